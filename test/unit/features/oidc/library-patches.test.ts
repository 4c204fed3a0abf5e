import { readFileSync } from 'node:fs';
import { Logger } from '@nestjs/common';
import { Provider } from 'oidc-provider';
import { describe, expect, it, vi } from 'vitest';
import {
  correctErrorCode,
  logNotices,
  patchProvider,
} from '../../../../src/features/oidc/engine/library-patches.js';

const BASE_URL = 'https://issuer.example';

/** Returns the library's context for a request that failed with this description. */
function failed(description: string) {
  return { status: 400, body: { error: 'invalid_request', error_description: description } };
}

describe('the patches of oidc-provider', () => {
  it('are for the version that is installed', () => {
    const installed = readFileSync('node_modules/oidc-provider/package.json', 'utf8');
    const patches = readFileSync('src/features/oidc/engine/library-patches.ts', 'utf8');
    const { version } = JSON.parse(installed) as { version: string };
    expect(patches).toContain(`oidc-provider ${version}`);
  });

  it('replace methods that the library has', async () => {
    const provider = new Provider(BASE_URL, {});
    const { ReplayDetection, Client, OIDCContext } = provider;
    const methods = (): unknown[] => [
      Reflect.get(ReplayDetection, 'unique'),
      Reflect.get(Client.prototype, 'compareClientSecret'),
      Reflect.get(OIDCContext.prototype, 'clientJwtAuthExpectedAudience'),
    ];
    const before = methods();
    expect(before.map((method) => typeof method)).toEqual(['function', 'function', 'function']);
    const spent: unknown[] = [];
    patchProvider(
      provider,
      () => [BASE_URL],
      async (...args) => {
        spent.push(args);
        return false;
      },
    );
    expect(methods().filter((method) => before.includes(method))).toEqual([]);
    expect(await ReplayDetection.unique('client', 'id', 1_000)).toBe(false);
    expect(spent).toEqual([['client', 'id', new Date(1_600_000)]]);
  });

  it('name the OAuth error of two messages of the library', () => {
    const messages = ['requested grant type is not allowed for this client', 'other'];
    const found = messages.map((message) => {
      const ctx = failed(message);
      correctErrorCode(ctx as never);
      return [ctx.status, ctx.body.error];
    });
    expect(found).toEqual([
      [400, 'unauthorized_client'],
      [400, 'invalid_request'],
    ]);
    const anonymous = failed('no client authentication mechanism provided');
    correctErrorCode(anonymous as never);
    expect([anonymous.status, anonymous.body.error]).toEqual([401, 'invalid_client']);
  });

  it('write the notices of the library to the log, and no other output', () => {
    const logger = new Logger('test');
    const logged = vi.spyOn(logger, 'debug').mockImplementation(() => undefined);
    logNotices(logger);
    // oxlint-disable-next-line no-console -- the library writes its notices here
    console.info('oidc-provider NOTICE: a notice');
    // oxlint-disable-next-line no-console -- other output
    console.info('other output');
    expect(logged.mock.calls).toEqual([['a notice']]);
  });
});
