import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';

const FRIEND = 'https://friend.example';
const STRANGER = 'https://stranger.example';

function corsOf({ headers }: Answer): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
}

function preflight(app: TestApp, path: string, origin: string): Promise<Answer> {
  const headers = {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,dpop,content-type',
  };
  return app.client().send('OPTIONS', path, { headers });
}

describe('CORS with an origin in SVC_CORS_ORIGINS', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_CORS_ORIGINS: FRIEND } });
  });
  afterAll(() => app.close());

  const get = (path: string, origin: string) => app.client().get(path, { headers: { origin } });

  it.each([
    '/health',
    '/v1/keys',
    '/v1/credentials/ssh/ca',
    '/nothing',
    '/oauth/token',
    '/scim/v2/Users',
  ])('allows any origin to read %s, without credentials, errors too', async (path) => {
    for (const origin of [FRIEND, STRANGER]) {
      const { 'access-control-expose-headers': exposed, ...rest } = corsOf(await get(path, origin));
      expect(rest).toEqual({ 'access-control-allow-origin': '*' });
      expect(exposed?.toLowerCase().split(',')).toEqual(
        expect.arrayContaining([
          'retry-after',
          'x-ratelimit-remaining',
          'dpop-nonce',
          'www-authenticate',
          'link',
        ]),
      );
    }
  });

  it('allows any origin to read a rate-limit error, and how long to wait', async () => {
    const client = app.client();
    const headers = { origin: STRANGER };
    const ask = () => client.get('/scim/v2/Users', { headers });
    let refused = await ask();
    while (refused.status !== 429) refused = await ask();
    expect(refused.headers.get('retry-after')).toEqual(expect.anything());
    expect(corsOf(refused)).toMatchObject({ 'access-control-allow-origin': '*' });
  });

  it.each(['/', '/login', '/enroll', '/account/keys', '/static/app.css', '/login/webauthn/start'])(
    'allows only the named origin to read %s, with credentials',
    async (path) => {
      const friend = await get(path, FRIEND);
      expect(corsOf(friend)).toMatchObject({
        'access-control-allow-origin': FRIEND,
        'access-control-allow-credentials': 'true',
      });
      expect(friend.headers.get('vary')).toMatch(/origin/i);
      const stranger = await get(path, STRANGER);
      expect(corsOf(stranger)).toEqual({});
      expect(stranger.headers.get('vary')).toMatch(/origin/i);
    },
  );

  it('answers preflights before any limit', async () => {
    const api = await preflight(app, '/v1/credentials/ssh', STRANGER);
    expect(api.status).toBe(204);
    expect(corsOf(api)).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET,HEAD,POST,PUT,PATCH,DELETE',
      'access-control-max-age': '7200',
    });
    expect(api.headers.get('access-control-allow-headers')).toMatch(/Authorization.*DPoP/);
    expect(api.headers.get('x-ratelimit-remaining')).toBe('20');
    const ui = await preflight(app, '/login/webauthn/start', FRIEND);
    expect(corsOf(ui)).toMatchObject({ 'access-control-allow-origin': FRIEND });
    const refused = await preflight(app, '/login/webauthn/start', STRANGER);
    expect(corsOf(refused)).toEqual({});
  });

  it.each(['/oauth/authorize', '/oauth/logout', '/OAuth/Authorize/', '/oauth/authorize/resumed'])(
    'sends no CORS headers on %s',
    async (path) => {
      for (const origin of [FRIEND, STRANGER, app.baseUrl]) {
        expect(corsOf(await get(path, origin))).toEqual({});
        expect(corsOf(await preflight(app, path, origin))).toEqual({});
      }
    },
  );
});

describe('CORS without SVC_CORS_ORIGINS', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('keeps the pages to the origin of the service', async () => {
    for (const path of ['/', '/login/webauthn/start', '/static/app.css']) {
      expect(corsOf(await app.client().get(path, { headers: { origin: FRIEND } }))).toEqual({});
      expect(corsOf(await preflight(app, path, FRIEND))).toEqual({});
    }
  });
});
