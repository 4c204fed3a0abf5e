import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';

const TOKEN = 'a token that only the conformance suite knows';
const PATHS = ['/certification/complete-login', '/certification/deny-login'];
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('certification test mode', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      environment: { SVC_CERTIFICATION_TEST_TOKEN: TOKEN, SVC_IDPS: '' },
    });
  });
  afterAll(() => app.close());

  it('starts without an identity provider', () => {
    expect(app.config.upstream.providers).toEqual([]);
  });

  it('has no rate limits', async () => {
    const client = app.client();
    for (let request = 0; request < 30; request += 1) {
      const answer = await client.post('/login/webauthn/start', {});
      expect([answer.status, answer.headers.get('x-ratelimit-limit')]).toEqual([200, null]);
    }
  });

  it.each(PATHS)('opens %s to nobody without its token', async (path) => {
    const client = app.client();
    for (const headers of [
      {},
      { authorization: 'Bearer something else' },
      { authorization: `Basic ${TOKEN}` },
      { authorization: `Bearer ${TOKEN.slice(1)}` },
    ] as Record<string, string>[]) {
      const answer = await client.post(path, undefined, { headers });
      expect([answer.status, answer.json.code]).toEqual([401, 'unauthenticated']);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    }
    const body = new URLSearchParams({ token: 'something else' }).toString();
    expect((await client.post(path, body, { headers: FORM })).status).toBe(401);
    const inQuery = `${path}?${new URLSearchParams({ token: TOKEN }).toString()}`;
    expect((await client.post(inQuery)).status).toBe(401);
  });

  it.each(PATHS)('%s says that no authorization is waiting', async (path) => {
    const client = app.client();
    const body = new URLSearchParams({ token: TOKEN }).toString();
    for (const answer of [
      await client.post(path, undefined, { headers: { authorization: `Bearer ${TOKEN}` } }),
      await client.post(path, body, { headers: FORM }),
    ]) {
      expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });

  it.each(PATHS)('%s is no page: a link leads nowhere, with the token or without', async (path) => {
    for (const headers of [{}, { authorization: `Bearer ${TOKEN}` }] as Record<string, string>[]) {
      const answer = await app.client().get(path, { headers });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    }
  });

  it.each(PATHS)('%s refuses a token that comes twice', async (path) => {
    const body = `token=${encodeURIComponent(TOKEN)}&token=x`;
    const answer = await app.client().post(path, body, { headers: FORM });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain(TOKEN);
  });
});

describe('without certification test mode', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it.each(PATHS)('%s does not exist', async (path) => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await app.client().post(path, undefined, { headers })).status).toBe(404);
  });
});
