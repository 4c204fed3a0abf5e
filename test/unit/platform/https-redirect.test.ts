import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { HealthController } from '../../../src/features/health/health.controller.js';
import { httpsRedirect } from '#platform/http/edge/https-redirect.js';
import { compiledRoutes } from '../../support/compiled-routes.js';

const routes = compiledRoutes(class {}, HealthController);
const redirect = httpsRedirect(routes, 'https://keys.example.org');

/** Returns the address to which a request is redirected; undefined if the request is served. */
function locationOf(url: string): string | undefined {
  let location: string | undefined;
  const response = {
    writeHead: (status: number, headers: { Location: string }) => {
      location = status === 308 ? headers.Location : `unexpected ${status}`;
      return { end: () => undefined };
    },
  };
  redirect(
    { url, headers: { host: 'evil.example' } } as IncomingMessage,
    response as unknown as ServerResponse,
    () => undefined,
  );
  return location;
}

describe('the redirect to https', () => {
  it.each([
    ['/', '/'],
    ['/login?provider=corp&redirect_to=%2Fkeys', '/login?provider=corp&redirect_to=%2Fkeys'],
    ['//evil.example/x', '//evil.example/x'],
    ['/\\evil.example', '/\\evil.example'],
    ['/@evil.example', '/@evil.example'],
    ['http://evil.example/x?y=1', '/x?y=1'],
    ['http://evil.example', '/'],
    ['javascript:alert(1)', '/'],
    ['.evil.example', '/'],
    ['@evil.example', '/'],
    ['*', '/'],
    ['', '/'],
    ['/healthy', '/healthy'],
    ['/health/../login', '/health/../login'],
  ])('sends %s to the origin of the service', (target, pathAndQuery) => {
    const location = locationOf(target) ?? '';
    expect(location).toBe(`https://keys.example.org${pathAndQuery}`);
    expect(new URL(location).origin).toBe('https://keys.example.org');
  });

  it.each(['/health', '/health/', '/health/ready', '/HEALTH?verbose'])('serves %s', (target) => {
    expect(locationOf(target)).toBeUndefined();
  });
});
