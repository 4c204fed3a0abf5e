import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client, type RequestOptions } from '../support/client.js';
import { idOf } from '../support/org-api.js';
import { auditOf, count, rows } from '../support/rows.js';

const PATH = '/v1/credentials/aws/token';
const ROLE = 'arn:aws:iam::123456789012:role/engineering/Deploy+Prod';
const TAGS = 'https://aws.amazon.com/tags';
const SOURCE_IDENTITY = 'https://aws.amazon.com/source_identity';

describe('/v1/credentials/aws/token', () => {
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_METRICS_BEARER_TOKEN: 'scraper' } });
    ({ client: ada } = await app.enrolled('ada@aws.example'));
  });
  afterAll(() => app.close());

  const ask = (body?: unknown, options: RequestOptions = {}) =>
    ada.post(PATH, body, { address: newAddress(), ...options });
  /**
   * Sends a GET as a program does: with the token of a browser's session as Bearer, and without a
   * cookie.
   */
  const getAs = (browser: Client, query = '') =>
    app.client().get(PATH + query, {
      headers: { authorization: `Bearer ${browser.cookie('svc_session')}` },
    });

  it('is signed by a published RSA key, for AWS alone and 300 seconds, and states the proof', async () => {
    const answer = await ask({ role_arn: ROLE });
    expect([answer.status, answer.json]).toEqual([
      200,
      { id_token: expect.any(String), expires_in: 300 },
    ]);
    expect(answer.headers.get('cache-control')).toContain('no-store');
    const keys = createRemoteJWKSet(new URL('/oauth/jwks', app.baseUrl));
    const { payload } = await jwtVerify(answer.json.id_token, keys, {
      algorithms: ['RS256'],
      issuer: app.baseUrl,
      audience: 'sts.amazonaws.com',
    });
    const [session] = await rows<{ auth_time: number; org_id: string; user_id: string }>(
      app.dataSource,
      `SELECT floor(extract(epoch FROM s.auth_time))::int AS auth_time, u.org_id, s.user_id
       FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.email = 'ada@aws.example'`,
    );
    const aaguid = payload['hardware_aaguid'];
    const tags = {
      email: ['ada@aws.example'],
      user_id: [session?.user_id],
      org_id: [session?.org_id],
      hardware_aaguid: [aaguid],
    };
    expect(payload).toEqual({
      iss: app.baseUrl,
      sub: 'ada@aws.example',
      aud: 'sts.amazonaws.com',
      iat: expect.any(Number),
      exp: (payload.iat ?? 0) + 300,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      auth_time: session?.auth_time,
      amr: ['hwk', 'pin', 'user'],
      acr: 'urn:nist:authentication:assurance-level:aal3',
      hardware_verified: true,
      hardware_aaguid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      role_arn: ROLE,
      'https://aws.amazon.com/roles': [ROLE],
      [SOURCE_IDENTITY]: 'ada@aws.example',
      [TAGS]: { principal_tags: tags, transitive_tag_keys: Object.keys(tags) },
    });
    const events = await auditOf(app.dataSource, 'ada@aws.example');
    expect(events.filter(({ type }) => type === 'aws_credential').at(-1)?.details).toEqual({
      jti: payload.jti,
      role_arn: ROLE,
      source_identity: 'ada@aws.example',
      expires_at: expect.any(String),
    });
  });

  it('comes by GET with the token in the header, with and without a role', async () => {
    const bare = await getAs(ada);
    expect([bare.status, decodeJwt(bare.json.id_token)['role_arn']]).toEqual([200, undefined]);
    expect(decodeJwt(bare.json.id_token)).not.toHaveProperty(['https://aws.amazon.com/roles']);
    const named = await getAs(ada, `?role_arn=${encodeURIComponent(ROLE)}`);
    expect(decodeJwt(named.json.id_token)['role_arn']).toBe(ROLE);
    expect(decodeProtectedHeader(named.json.id_token)).toMatchObject({ alg: 'RS256', typ: 'JWT' });
  });

  it('has the tag read_only, which the audit log names, if the client asks for it, by POST and GET', async () => {
    const tagsOf = (answer: { json: { id_token: string } }) =>
      decodeJwt<Record<string, { principal_tags: object }>>(answer.json.id_token)[TAGS]
        ?.principal_tags;
    const asked = [
      await ask({ role_arn: ROLE, read_only: true }),
      await getAs(ada, '?read_only=true'),
    ];
    for (const answer of asked) expect(tagsOf(answer)).toMatchObject({ read_only: ['true'] });
    const events = await auditOf(app.dataSource, 'ada@aws.example');
    const last = events.filter(({ type }) => type === 'aws_credential').slice(-2);
    expect(last.map(({ details }) => details['read_only'])).toEqual([true, true]);
    for (const answer of [await ask({ read_only: false }), await getAs(ada, '?read_only=false')]) {
      expect(tagsOf(answer)).not.toHaveProperty('read_only');
    }
    for (const wrong of ['yes', 1, null]) {
      expect((await ask({ read_only: wrong })).json.code).toBe('invalid_request');
    }
    expect((await getAs(ada, '?read_only=1')).json.code).toBe('invalid_request');
  });

  it('never comes by GET with the cookie, which a browser sends for any page', async () => {
    const before = await count(app.dataSource, "audit_events WHERE type = 'aws_credential'");
    const answer = await ada.get(PATH, { address: newAddress() });
    expect([answer.status, answer.json.code]).toEqual([401, 'unauthenticated']);
    const head = await app.client().send('HEAD', PATH, {
      headers: { authorization: `Bearer ${ada.cookie('svc_session')}` },
    });
    expect(head.status).toBe(405);
    expect(await count(app.dataSource, "audit_events WHERE type = 'aws_credential'")).toBe(before);
  });

  it('comes by POST with the cookie only from the service’s own page, and with an empty body', async () => {
    const forged = await ask({}, { headers: { origin: 'https://evil.example' } });
    expect([forged.status, forged.json.code]).toEqual([403, 'invalid_origin']);
    expect((await ask()).status).toBe(200);
    expect((await ask({ unknown: true })).status).toBe(200);
  });

  it.each([
    ['arn:aws-us-gov:iam::123456789012:role/r', 200],
    [`arn:aws:iam::123456789012:role/${'p'.repeat(400)}/${'n'.repeat(64)}`, 200],
    ['', 400],
    ['arn:aws:iam::123456789012:user/ada', 400],
    ['arn:aws:iam::12345678901:role/r', 400],
    ['arn:aws:iam::123456789012:role/', 400],
    ['arn:aws:iam::123456789012:role/has space', 400],
    ['arn:aws:iam::123456789012:role/r\nx', 400],
    [`arn:aws:iam::123456789012:role/${'n'.repeat(65)}`, 400],
    [`arn:aws:iam::123456789012:role/${'p'.repeat(2048)}/r`, 400],
    ['arn:gcp:iam::123456789012:role/r', 400],
    [7, 400],
    [null, 400],
  ])('the role %j is answered with %i', async (role, status) => {
    const answer = await ask({ role_arn: role });
    expect(answer.status).toBe(status);
    if (status === 400) {
      expect(answer.json.code).toBe('invalid_request');
      expect(answer.json.detail).toContain('role_arn');
    }
  });

  it('two roles in one query are refused', async () => {
    const role = `role_arn=${encodeURIComponent(ROLE)}`;
    expect((await getAs(ada, `?${role}&${role}`)).status).toBe(400);
  });

  it('a body over 8 KiB, an array and another content type are refused', async () => {
    expect((await ask({ role_arn: 'x'.repeat(8 * 1024) })).status).toBe(413);
    expect((await ask([])).status).toBe(400);
    expect((await ask('{}', { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
  });

  it('no session is 401, and a bootstrap session is 403 hardware_required', async () => {
    expect((await app.client().post(PATH, {})).status).toBe(401);
    const bootstrap = app.client();
    await bootstrap.signIn('ada@aws.example');
    const answer = await bootstrap.post(PATH, {});
    expect([answer.status, answer.json.code]).toEqual([403, 'hardware_required']);
  });

  it('a user without an organization gets none', async () => {
    const { client: loner } = await app.enrolled('loner@gmail.com');
    const answer = await loner.post(PATH, {});
    expect([answer.status, answer.json.code]).toEqual([403, 'issuance_refused']);
    expect(answer.json.detail).toContain('members of an organization');
    expect(await auditOf(app.dataSource, 'loner@gmail.com')).not.toContainEqual(
      expect.objectContaining({ type: 'aws_credential' }),
    );
  });

  it('a user under a domain that the organization does not own gets none', async () => {
    const { client: moved } = await app.enrolled('moved@aws.example');
    await app.dataSource.query(
      "UPDATE users SET email = 'moved@foreign.example' WHERE email = 'moved@aws.example'",
    );
    const answer = await moved.post(PATH, {});
    expect([answer.status, answer.json.code]).toEqual([403, 'issuance_refused']);
  });

  it('an e-mail that STS does not take leaves the source identity to the user id', async () => {
    const email = "o'hara@aws.example";
    const { client: ohara } = await app.enrolled(email);
    const { id_token } = (await ohara.post(PATH, {})).json;
    const claims = decodeJwt<Record<string, any>>(id_token); // oxlint-disable-line typescript/no-explicit-any
    expect(claims.sub).toBe(email);
    expect(claims[SOURCE_IDENTITY]).toBe(await idOf(app, email));
    expect(claims[TAGS].principal_tags).not.toHaveProperty('email');
  });

  it('ends with the session, where that ends first', async () => {
    const { client } = await app.enrolled('late@aws.example');
    await app.dataSource.query(
      `UPDATE sessions SET expires_at = now() + interval '100 seconds'
       WHERE user_id = (SELECT id FROM users WHERE email = 'late@aws.example')`,
    );
    const { id_token, expires_in } = (await client.post(PATH, {})).json;
    const { exp, iat } = decodeJwt(id_token);
    expect((exp ?? 0) - (iat ?? 0)).toBe(expires_in);
    expect(expires_in).toBeGreaterThan(90);
    expect(expires_in).toBeLessThanOrEqual(100);
  });

  it('is counted as a credential of type aws', async () => {
    const scrape = async () =>
      (await app.client().get('/metrics', { headers: { authorization: 'Bearer scraper' } })).text;
    const issued = async () =>
      Number(/svc_credential_issuance_total\{type="aws"\} (\d+)/.exec(await scrape())?.[1]);
    const before = await issued();
    await ask({});
    expect(await issued()).toBe(before + 1);
  });

  it('is no access token of the service’s own APIs', async () => {
    const { id_token } = (await ask({})).json;
    const answer = await app.client().get(PATH, {
      headers: { authorization: `Bearer ${id_token}` },
    });
    expect([answer.status, answer.json.code]).toEqual([401, 'unauthenticated']);
  });
});
