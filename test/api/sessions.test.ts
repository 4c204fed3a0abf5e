import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';

describe('sessions', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('signing in upstream opens a bootstrap session and leads to enrollment', async () => {
    const client = app.client();
    const page = await client.signIn('ada@acme.example', '/account/keys');
    expect(page.status).toBe(200);
    expect(page.url.href).toBe(
      `${app.baseUrl}/enroll?redirect_to=${encodeURIComponent(`${app.baseUrl}/account/keys`)}`,
    );
    const denied = await client.get('/v1/keys');
    expect([denied.status, denied.json.code]).toEqual([403, 'hardware_required']);
  });

  it('enrollment with user verification is the first login, and the bootstrap cookie is invalid', async () => {
    const client = app.client();
    await client.signIn('grace@acme.example');
    const bootstrap = client.cookie('svc_session') ?? '';
    const answer = await client.enroll(app.newKey(), 'blue key');
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({
      key: expect.objectContaining({ name: 'blue key', current: true, user_verification: true }),
      redirect_to: `${app.baseUrl}/enroll/done`,
    });
    expect(client.cookie('svc_session')).not.toBe(bootstrap);
    expect((await client.get('/v1/keys')).status).toBe(200);

    const old = app.client();
    old.setCookie('svc_session', bootstrap);
    expect((await old.get('/v1/keys')).status).toBe(401);
  });

  it('the token of the cookie is accepted as Bearer too, and refused under the DPoP scheme', async () => {
    const { client } = await app.enrolled('bearer@acme.example');
    const token = client.cookie('svc_session') ?? '';
    const other = app.client();
    const bearer = await other.get('/v1/keys', { headers: { authorization: `Bearer ${token}` } });
    expect(bearer.status).toBe(200);
    const dpop = await other.get('/v1/keys', { headers: { authorization: `DPoP ${token}` } });
    expect(dpop.status).toBe(401);
    expect(dpop.headers.get('www-authenticate')).toMatch(/^Bearer error="invalid_token"/);
    const basic = await client.get('/v1/keys', { headers: { authorization: 'Basic abc' } });
    expect(basic.status).toBe(401);
  });
});
