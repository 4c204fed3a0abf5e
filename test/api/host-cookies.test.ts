import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { sendSecurely, type SecureAnswer } from '../support/https-client.js';
import { rows } from '../support/rows.js';
import { startSecureApp, type SecureApp } from '../support/secure-app.js';

/** The header that current browsers send over https, and that other programs do not send. */
const BROWSER = { 'sec-fetch-site': 'same-origin' };

describe('the session cookies under https', () => {
  let secure: SecureApp;
  let own: string;
  let planted: string;
  beforeAll(async () => {
    secure = await startSecureApp();
    own = await token('ada@host-cookies.example');
    planted = await token('eve@host-cookies.example');
  });
  afterAll(() => secure.app.close());

  const token = async (email: string) => (await secure.loggedIn(email)).split('=')[1] ?? '';
  const send = (method: string, path: string, headers: Record<string, string>) =>
    sendSecurely(secure.baseUrl + path, {
      ca: secure.authority.ca,
      method,
      headers: { 'x-forwarded-for': newAddress(), ...headers },
    });
  const keys = (cookie: string, headers: Record<string, string> = {}) =>
    secure.get(secure.baseUrl, '/v1/keys', { cookie, ...headers });
  const cookiesOf = ({ headers }: SecureAnswer) => [headers['set-cookie'] ?? []].flat();

  /**
   * Returns the e-mail address of the user whose session the service takes from a cookie header, or
   * the status of a refusal.
   */
  async function personOf(cookie: string, headers: Record<string, string> = {}) {
    const answer = await secure.get(secure.baseUrl, '/v1/sessions', { cookie, ...headers });
    if (answer.status !== 200) return answer.status;
    const { id } = (
      answer.json.sessions as { readonly id: string; readonly current: boolean }[]
    ).find(({ current }) => current) ?? { id: '' };
    const [row] = await rows<{ email: string }>(
      secure.app.dataSource,
      'SELECT email FROM users u JOIN sessions s ON s.user_id = u.id WHERE s.id = $1',
      [id],
    );
    return row?.email;
  }

  it('10.9 with the __Host- prefix is the only one that is read if present, in any order', async () => {
    const mine = 'ada@host-cookies.example';
    expect(await personOf(`__Host-svc_session=${own}`, BROWSER)).toBe(mine);
    for (const headers of [BROWSER, {}]) {
      const first = `svc_session=${planted}; __Host-svc_session=${own}`;
      const last = `__Host-svc_session=${own}; svc_session=${planted}`;
      expect(await personOf(first, headers)).toBe(mine);
      expect(await personOf(last, headers)).toBe(mine);
    }
  });

  it.each([
    ['that is unknown', '__Host-svc_session=unknown'],
    ['that is empty', '__Host-svc_session='],
    ['of two values', '__Host-svc_session=one; __Host-svc_session=two'],
  ])('10.9 one of the prefix %s is not replaced by svc_session', async (_, cookie) => {
    for (const headers of [BROWSER, {}]) {
      expect((await keys(`${cookie}; svc_session=${own}`, headers)).status).toBe(401);
    }
  });

  it('10.9 svc_session alone gives no access in a browser, and full access to a program', async () => {
    for (const site of ['none', 'same-origin', 'same-site', 'cross-site', '']) {
      const answer = await keys(`svc_session=${own}`, { 'sec-fetch-site': site });
      expect([site, answer.status]).toEqual([site, 401]);
    }
    expect((await keys(`svc_session=${own}`)).status).toBe(200);
  });

  it('10.9 the pages, OAuth and the device page apply the same rule', async () => {
    const form = {
      'content-type': 'application/x-www-form-urlencoded',
      origin: secure.baseUrl,
      ...BROWSER,
    };
    const device = (cookie: string) =>
      sendSecurely(`${secure.baseUrl}/device`, {
        ca: secure.authority.ca,
        method: 'POST',
        form: { user_code: 'BCDF-GHJK' },
        headers: { 'x-forwarded-for': newAddress(), ...form, cookie },
      });
    // with the session, 404 for an invalid code
    expect((await device(`__Host-svc_session=${own}`)).status).toBe(404);
    // without a session, a redirect to the login
    expect((await device(`svc_session=${own}`)).status).toBe(303);
    const page = (cookie: string) => send('GET', '/account/keys', { cookie, ...BROWSER });
    expect((await page(`__Host-svc_session=${own}`)).status).toBe(200);
    expect((await page(`svc_session=${own}`)).status).toBe(303);
  });

  it('10.9 a write under either cookie needs the service’s own origin', async () => {
    const foreign = { origin: 'https://evil.example' };
    for (const cookie of [`__Host-svc_session=${own}`, `svc_session=${own}`]) {
      const answer = await send('PATCH', '/v1/keys/x', { cookie, ...foreign });
      expect([answer.status, answer.json.code]).toEqual([403, 'invalid_origin']);
    }
  });

  it('10.9 a logout ends the session of each, and deletes both in the browser', async () => {
    const [mine, other] = [await token('bob@host-cookies.example'), planted];
    const cookie = `__Host-svc_session=${mine}; svc_session=${other}`;
    const answer = await send('POST', '/logout', { cookie, origin: secure.baseUrl, ...BROWSER });
    expect(answer.status).toBe(303);
    expect(cookiesOf(answer)).toEqual([
      '__Host-svc_session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax',
      'svc_session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax',
    ]);
    for (const ended of [mine, other]) {
      expect((await keys(`__Host-svc_session=${ended}`)).status).toBe(401);
    }
  });

  it('10.9 the secret of a browser before its login has the prefix too, and a planted one is refused', async () => {
    const known = 'x'.repeat(43);
    const secretsSet = async (cookie: string) =>
      cookiesOf(await send('GET', '/login?provider=demo', { cookie, ...BROWSER }));
    expect(await secretsSet(`svc_browser=${known}`)).toEqual([
      expect.stringMatching(/^__Host-svc_browser=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite/),
    ]);
    expect(await secretsSet(`__Host-svc_browser=${known}`)).toEqual([]);
  });
});

describe('the session cookie under http', () => {
  it('10.9 is only svc_session, for browsers and programs', async () => {
    const app = await startTestApp();
    try {
      const { client } = await app.enrolled('ada@http.example');
      const token = client.cookie('svc_session') ?? '';
      expect(client.cookie('__Host-svc_session')).toBeUndefined();
      expect((await client.get('/v1/keys', { headers: BROWSER })).status).toBe(200);
      const headers = { cookie: `__Host-svc_session=${token}` };
      expect((await app.client().get('/v1/keys', { headers })).status).toBe(401);
    } finally {
      await app.close();
    }
  });
});
