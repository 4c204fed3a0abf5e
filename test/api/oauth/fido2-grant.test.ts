import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { ath, newDpopKey, postForm } from '../../support/oauth-flow.js';
import { auditOf, count, rows } from '../../support/rows.js';

const FIDO2 = 'urn:svc:params:oauth:grant-type:fido2';
const NATIVE_ORIGIN = 'svc-native:svc-cli';
const nativeOriginOf = (clientId: string) => `svc-native:${clientId}`;
const ORDERS = 'https://orders.example/api';

/**
 * The metadata (RFC 7591) of two clients that register for the FIDO2 grant: a public and a
 * confidential one.
 */
const NATIVE = {
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  redirect_uris: [],
  response_types: [],
  grant_types: [FIDO2],
};
const CONFIDENTIAL = {
  ...NATIVE,
  application_type: 'web',
  token_endpoint_auth_method: 'client_secret_post',
};

type Options = Parameters<SoftwareKey['get']>[0];
type Response = ReturnType<SoftwareKey['get']>['response'];

describe('the FIDO2 grant', () => {
  let app: TestApp;
  let browser: Client;
  let key: SoftwareKey;
  let email: string;
  let people = 0;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    people += 1;
    email = `ada@fido2-${people}.example`;
    ({ client: browser, key } = await app.enrolled(email));
  });

  const challenge = async (fields: Record<string, string> = {}) => {
    const answer = await postForm(app, '/oauth/fido2/challenge', {
      client_id: 'svc-cli',
      ...fields,
    });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return answer.json as { state: string; publicKey: Options };
  };
  const encoded = (credential: unknown) =>
    Buffer.from(JSON.stringify(credential)).toString('base64url');
  const assertion = (publicKey: Options, origin = NATIVE_ORIGIN, by = key) =>
    encoded(by.get(publicKey, origin));
  const redeem = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
    postForm(app, '/oauth/token', { grant_type: FIDO2, client_id: 'svc-cli', ...fields }, headers);
  const outcomeOf = ({ status, json }: Answer) => [status, json.error];
  const refusal = [400, 'invalid_grant'];
  const sessionsOf = (clientId: string) =>
    count(app.dataSource, 'sessions WHERE client_id = $1', [clientId]);
  const failures = async () =>
    (await auditOf(app.dataSource, email)).filter(({ type }) => type === 'login_failed');
  async function touch(
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const { state, publicKey } = await challenge();
    return redeem({ state, assertion: assertion(publicKey), ...fields }, headers);
  }

  it('gives svc-cli a token for the rest of its own session, which opens the APIs of the service', async () => {
    const scope = 'openid email svc:credentials';
    const answer = await touch({ scope, nonce: 'n-1' });
    expect([answer.status, answer.json]).toEqual([200, expect.any(Object)]);
    expect(answer.json).toMatchObject({ token_type: 'Bearer', scope });
    expect(answer.json.expires_in).toBeGreaterThan(8 * 3600 - 30);
    expect(answer.json).not.toHaveProperty('refresh_token');
    expect(claimsOf(answer.json.id_token as string)).toMatchObject({
      iss: app.baseUrl,
      aud: 'svc-cli',
      nonce: 'n-1',
      hardware_verified: true,
      hardware_aaguid: expect.any(String) as string,
      auth_time: expect.any(Number) as number,
      amr: ['hwk', 'pin', 'user'],
      acr: 'urn:nist:authentication:assurance-level:aal3',
    });
    const headers = { authorization: `Bearer ${answer.json.access_token}` };
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(200);
    expect((await app.client().get('/oauth/userinfo', { headers })).json).toMatchObject({ email });
    const types = (await auditOf(app.dataSource, email)).map(({ type }) => type);
    expect(types.slice(-2)).toEqual(['login_success', 'oauth_token_issued']);
  });

  it('10.26 returns an ID token with the claims of the granted scopes', async () => {
    const { json } = await touch({ scope: 'openid email' });
    expect(claimsOf(json.id_token as string)).toMatchObject({ email, email_verified: true });
    const { json: bare } = await touch({ scope: 'openid' });
    expect(claimsOf(bare.id_token as string)).not.toHaveProperty('email');
  });

  it('10.1 omits svc:admin from a token without a DPoP key', async () => {
    const answer = await touch({ scope: 'svc:credentials svc:admin' });
    expect([answer.status, answer.json]).toMatchObject([
      200,
      { token_type: 'Bearer', scope: 'svc:credentials' },
    ]);
    const headers = { authorization: `Bearer ${answer.json.access_token}` };
    expect((await app.client().get('/api/v1/org/members', { headers })).status).toBe(403);
  });

  it('10.1 gives svc:admin with a DPoP key, for 15 minutes', async () => {
    const dpop = await newDpopKey();
    const answer = await touch(
      { scope: 'svc:credentials svc:admin' },
      { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) },
    );
    expect([answer.status, answer.json]).toMatchObject([
      200,
      { token_type: 'DPoP', scope: 'svc:credentials svc:admin', expires_in: 900 },
    ]);
    const token = answer.json.access_token as string;
    const [kept] = await rows(
      app.dataSource,
      "SELECT expires_at <= now() + interval '15 minutes' AS short FROM oauth_artifacts WHERE id = sha256($1::bytea)",
      [Buffer.from(token)],
    );
    expect(kept).toEqual({ short: true });
    const members = `${app.baseUrl}/api/v1/org/members`;
    const ask = async (headers: Record<string, string>) =>
      (await app.client().get('/api/v1/org/members', { headers })).status;
    const proof = await dpop.proof('GET', members, { ath: ath(token) });
    expect(await ask({ authorization: `DPoP ${token}`, dpop: proof })).toBe(200);
    expect(await ask({ authorization: `Bearer ${token}` })).toBe(401);
  });

  it('gives a token for a resource, limited to the scopes of that resource', async () => {
    const { clientId } = await addApplication(
      app,
      { ...NATIVE, svc_resource_scopes: 'orders:read' },
      { owner: email },
    );
    const { state, publicKey } = await challenge({ client_id: clientId });
    const answer = await redeem({
      client_id: clientId,
      state,
      assertion: assertion(publicKey, nativeOriginOf(clientId)),
      scope: 'openid email orders:read orders:write',
      resource: ORDERS,
    });
    expect([answer.status, answer.json.scope]).toEqual([200, 'openid email orders:read']);
    expect(claimsOf(answer.json.access_token as string)).toMatchObject({
      aud: ORDERS,
      scope: 'openid email orders:read',
      hardware_verified: true,
    });
    expect(claimsOf(answer.json.id_token as string)).toMatchObject({ aud: clientId, email });
    expect(answer.json.expires_in).toBeLessThanOrEqual(300);
  });

  it('a logout of the browser does not end it; the removal of its key does', async () => {
    const { json } = await touch({ scope: 'svc:credentials' });
    const headers = { authorization: `Bearer ${json.access_token}` };
    await browser.post('/logout');
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(200);
    await app.dataSource.query(
      'DELETE FROM authenticators WHERE user_id = (SELECT id FROM users WHERE email = $1)',
      [email],
    );
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(401);
  });

  it('binds the token to the DPoP key of the challenge', async () => {
    const dpop = await newDpopKey();
    const { state, publicKey } = await challenge({ dpop_jkt: dpop.thumbprint });
    const answer = await redeem(
      { state, assertion: assertion(publicKey), scope: 'svc:credentials' },
      { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) },
    );
    expect([answer.status, answer.json.token_type]).toEqual([200, 'DPoP']);
    const token = answer.json.access_token as string;
    const proof = await dpop.proof('GET', `${app.baseUrl}/v1/keys`, { ath: ath(token) });
    const own = { authorization: `DPoP ${token}`, dpop: proof };
    expect((await app.client().get('/v1/keys', { headers: own })).status).toBe(200);
    const bearer = { authorization: `Bearer ${token}` };
    expect((await app.client().get('/v1/keys', { headers: bearer })).status).toBe(401);
  });

  it('is refused with another DPoP key than the challenge names, or without one', async () => {
    const [named, other] = [await newDpopKey(), await newDpopKey()];
    for (const dpop of [await other.proof('POST', `${app.baseUrl}/oauth/token`), '']) {
      const { state, publicKey } = await challenge({ dpop_jkt: named.thumbprint });
      const answer = await redeem({ state, assertion: assertion(publicKey) }, { dpop });
      expect(outcomeOf(answer)).toEqual(refusal);
    }
  });

  it('a client with bound tokens gets none without a proof, and its state is not spent', async () => {
    const metadata = { ...NATIVE, dpop_bound_access_tokens: true };
    const { clientId } = await addApplication(app, metadata, { owner: email });
    const { state, publicKey } = await challenge({ client_id: clientId });
    const own = assertion(publicKey, nativeOriginOf(clientId));
    const fields = { client_id: clientId, state, assertion: own };
    expect(outcomeOf(await redeem(fields))).toEqual(refusal);
    const dpop = await (await newDpopKey()).proof('POST', `${app.baseUrl}/oauth/token`);
    expect((await redeem(fields, { dpop })).json.token_type).toBe('DPoP');
  });

  it('a DPoP proof is accepted once, with any parameters', async () => {
    const dpop = await (await newDpopKey()).proof('POST', `${app.baseUrl}/oauth/token`);
    expect((await touch({}, { dpop })).status).toBe(200);
    const before = await sessionsOf('svc-cli');
    expect(outcomeOf(await touch({}, { dpop }))).toEqual(refusal);
    expect(await sessionsOf('svc-cli')).toBe(before);
  });

  it('20 requests with one state: one token, one session', async () => {
    const { state, publicKey } = await challenge();
    const before = await sessionsOf('svc-cli');
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => redeem({ state, assertion: assertion(publicKey) })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ json }) => json.error === 'invalid_grant')).toHaveLength(19);
    expect(await sessionsOf('svc-cli')).toBe(before + 1);
  });

  it('a refused assertion spends its state', async () => {
    const { state, publicKey } = await challenge();
    await redeem({ state, assertion: assertion(publicKey, 'https://evil.example') });
    expect(outcomeOf(await redeem({ state, assertion: assertion(publicKey) }))).toEqual(refusal);
  });

  it.each([
    ['our web origin', () => app.baseUrl],
    ['another site', () => 'https://evil.example'],
    ['a name that ends like ours', () => 'https://evil-localhost'],
    ['a name that begins like ours', () => 'https://localhost.evil.example'],
    ['our name without TLS', () => 'http://localhost'],
    ['no scheme', () => 'localhost'],
    ['a page on the domain of the relying party', () => 'https://localhost'],
    ['a page without an origin', () => 'null'],
    ['another native client', () => nativeOriginOf('another')],
  ])('10.1 an assertion made for %s is refused, and audited once', async (_, origin) => {
    const { state, publicKey } = await challenge();
    const answer = await redeem({ state, assertion: assertion(publicKey, origin()) });
    expect(outcomeOf(answer)).toEqual(refusal);
    expect(await failures()).toHaveLength(1);
  });

  it.each<readonly [string, (response: Response, stranger: string) => object]>([
    ['another user’s handle', (response, userHandle) => ({ ...response, userHandle })],
    ['no user handle', (response) => ({ ...response, userHandle: undefined })],
    ['a signature over something else', (response) => ({ ...response, signature: 'MAYCAQECAQE' })],
  ])('is refused: %s', async (_, tampered) => {
    const other = await app.enrolled(`other-${email}`);
    const { state, publicKey } = await challenge();
    const credential = key.get(publicKey, NATIVE_ORIGIN);
    const stranger = other.key.get(publicKey, NATIVE_ORIGIN).response.userHandle ?? '';
    const response = tampered(credential.response, stranger);
    const answer = await redeem({ state, assertion: encoded({ ...credential, response }) });
    expect(outcomeOf(answer)).toEqual(refusal);
    expect(await failures()).toHaveLength(1);
  });

  it('user presence alone is refused, from a key that can verify its user', async () => {
    const { state, publicKey } = await challenge();
    const lax: Options = { ...publicKey, userVerification: 'discouraged' };
    expect(outcomeOf(await redeem({ state, assertion: assertion(lax) }))).toEqual(refusal);
    expect(await failures()).toHaveLength(1);
  });

  it('an assertion over another challenge is refused', async () => {
    const [{ state }, { publicKey }] = [await challenge(), await challenge()];
    expect(outcomeOf(await redeem({ state, assertion: assertion(publicKey) }))).toEqual(refusal);
  });

  it('a key that was removed is refused', async () => {
    await app.dataSource.query(
      'DELETE FROM authenticators WHERE user_id = (SELECT id FROM users WHERE email = $1)',
      [email],
    );
    const answer = await touch();
    expect(outcomeOf(answer)).toEqual(refusal);
    expect(answer.json.error_description).toContain('not registered');
  });

  it('a U2F key, which cannot verify its user, is refused', async () => {
    const u2f = app.newKey({ format: 'fido-u2f' });
    const owner = app.client();
    await owner.signIn(`u2f-${email}`);
    await owner.enroll(u2f);
    const known = (await owner.post('/login/webauthn/start', {})).json.publicKey as Options;
    const { state, publicKey } = await challenge();
    const touched = { ...publicKey, allowCredentials: known.allowCredentials };
    const answer = await redeem({ state, assertion: assertion(touched, NATIVE_ORIGIN, u2f) });
    expect(outcomeOf(answer)).toEqual(refusal);
    expect(answer.json.error_description).toContain('cannot verify its user');
  });

  it('a counter that does not increase is refused, and audited once', async () => {
    await app.dataSource.query('UPDATE authenticators SET sign_count = 1000000');
    expect(outcomeOf(await touch())).toEqual(refusal);
    expect((await failures()).map(({ details }) => details['reason'])).toEqual([
      'signature counter did not grow',
    ]);
  });

  it('a deactivated account is refused', async () => {
    await app.dataSource.query('UPDATE users SET active = false WHERE email = $1', [email]);
    expect(outcomeOf(await touch())).toEqual(refusal);
  });

  it('an account whose e-mail its organization does not own gets no token, and no session stays', async () => {
    await app.dataSource.query(
      'UPDATE organization_domains SET verified_at = NULL WHERE domain = $1',
      [email.split('@')[1]],
    );
    const before = await sessionsOf('svc-cli');
    expect(outcomeOf(await touch({ scope: 'svc:credentials' }))).toEqual(refusal);
    expect(await sessionsOf('svc-cli')).toBe(before);
  });

  it('a state of another client is refused, and so is one of a browser login', async () => {
    const { clientId } = await addApplication(app, NATIVE, { owner: email });
    const theirs = await challenge({ client_id: clientId });
    const crossed = await redeem({ state: theirs.state, assertion: assertion(theirs.publicKey) });
    expect(outcomeOf(crossed)).toEqual(refusal);
    const login = (await app.client().post('/login/webauthn/start', {})).json;
    const borrowed = await redeem({ state: login.state, assertion: assertion(login.publicKey) });
    expect(outcomeOf(borrowed)).toEqual(refusal);
  });

  it('a web client’s assertion needs the origin of the service', async () => {
    const { clientId, clientSecret } = await addApplication(app, CONFIDENTIAL, { owner: email });
    const credentials = { client_id: clientId, client_secret: clientSecret };
    for (const [origin, status] of [
      [app.baseUrl, 200],
      [NATIVE_ORIGIN, 400],
    ] as const) {
      const { state, publicKey } = await challenge({ client_id: clientId });
      const fields = { state, assertion: assertion(publicKey, origin), scope: 'openid' };
      expect([origin, (await redeem({ ...fields, ...credentials })).status]).toEqual([
        origin,
        status,
      ]);
    }
  });

  it('a confidential client must authenticate, and otherwise its state is not spent', async () => {
    const { clientId, clientSecret } = await addApplication(app, CONFIDENTIAL, { owner: email });
    const { state, publicKey } = await challenge({ client_id: clientId });
    const fields = { client_id: clientId, state, assertion: assertion(publicKey, app.baseUrl) };
    expect(outcomeOf(await redeem({ ...fields, client_secret: 'x' }))).toEqual([
      401,
      'invalid_client',
    ]);
    expect((await redeem({ ...fields, client_secret: clientSecret })).status).toBe(200);
  });

  it('another client does not get the service’s own scopes', async () => {
    const { clientId } = await addApplication(app, NATIVE, { owner: email });
    const { state, publicKey } = await challenge({ client_id: clientId });
    const own = assertion(publicKey, nativeOriginOf(clientId));
    const fields = { client_id: clientId, state, assertion: own };
    const answer = await redeem({ ...fields, scope: 'openid svc:credentials' });
    expect(outcomeOf(answer)).toEqual([400, 'invalid_scope']);
  });

  it.each<readonly [string, 'application' | 'dynamic']>([
    ['an application of another organization', 'application'],
    ['a client that registered itself', 'dynamic'],
  ])('%s gets no token, since no user can consent, and no session stays', async (_, kind) => {
    const owner = `eve@elsewhere-${people}-${kind}.example`;
    await app.enrolled(owner);
    const { clientId } = await addApplication(app, NATIVE, { owner, kind });
    const { state, publicKey } = await challenge({ client_id: clientId });
    const own = assertion(publicKey, nativeOriginOf(clientId));
    const answer = await redeem({ client_id: clientId, state, assertion: own });
    expect(outcomeOf(answer)).toEqual(refusal);
    expect(answer.json.error_description).toContain('cannot ask for consent');
    expect(await sessionsOf(clientId)).toBe(0);
  });

  it('a colleague’s application gets no token for a resource, also if an admin has approved it', async () => {
    const owner = `owner@${email.split('@')[1]}`;
    await app.enrolled(owner);
    const { clientId } = await addApplication(app, NATIVE, { owner });
    await rows(
      app.dataSource,
      `UPDATE oauth_clients SET approved_at = now(), approved_by = owner_id, approved_uris = '{}' WHERE id = $1`,
      [clientId],
    );
    const redeemed = async (fields: Record<string, string>) => {
      const { state, publicKey } = await challenge({ client_id: clientId });
      const own = assertion(publicKey, nativeOriginOf(clientId));
      return redeem({ client_id: clientId, state, assertion: own, scope: 'openid', ...fields });
    };
    expect((await redeemed({})).status).toBe(200);
    const before = await sessionsOf(clientId);
    const answer = await redeemed({ resource: ORDERS });
    expect(outcomeOf(answer)).toEqual(refusal);
    expect(answer.json.error_description).toContain('cannot ask for consent');
    expect(await sessionsOf(clientId)).toBe(before);
  });

  it('a scope that its user may not grant is omitted, and the response says so', async () => {
    const { key: theirs } = await app.enrolled(`member@${email.split('@')[1]}`);
    const { state, publicKey } = await challenge();
    const answer = await redeem({
      state,
      assertion: assertion(publicKey, NATIVE_ORIGIN, theirs),
      scope: 'svc:credentials svc:admin svc:everything',
    });
    expect([answer.status, answer.json.scope]).toEqual([200, 'svc:credentials']);
  });

  it.each([
    ['no assertion', { assertion: '' }, 'invalid_request'],
    ['no state', { state: '' }, 'invalid_request'],
    ['garbage', { assertion: 'garbage' }, 'invalid_grant'],
    ['JSON that is none of a key', { assertion: 'eyJpZCI6MX0' }, 'invalid_grant'],
    ['JSON that is nothing', { assertion: 'bnVsbA' }, 'invalid_grant'],
    ['more than any key says', { assertion: 'e'.repeat(20_000) }, 'invalid_grant'],
    ['a forged state', { state: 'e30.e30.e30.e30.e30' }, 'invalid_grant'],
    ['our own API as the resource', { resource: '{base}' }, 'invalid_target'],
  ])('is refused: %s', async (_, fields, error) => {
    const filled = Object.entries(fields).map(([name, value]) => [
      name,
      value.replace('{base}', app.baseUrl),
    ]);
    const answer = await touch(Object.fromEntries(filled) as Record<string, string>);
    expect(outcomeOf(answer)).toEqual([400, error]);
  });

  it('a client without the grant gets no challenge', async () => {
    const metadata = { ...CONFIDENTIAL, grant_types: ['client_credentials'] };
    const { clientId } = await addApplication(app, metadata, { owner: email });
    const ask = async (client_id: string, fields = {}) =>
      outcomeOf(await postForm(app, '/oauth/fido2/challenge', { client_id, ...fields }));
    expect(await ask(clientId)).toEqual([400, 'unauthorized_client']);
    expect(await ask('nobody')).toEqual([400, 'invalid_client']);
    expect(await ask('svc-cli', { dpop_jkt: 'x' })).toEqual([400, 'invalid_request']);
  });

  it.each([
    FIDO2,
    'urn:ietf:params:oauth:grant-type:token-exchange',
    'urn:ietf:params:oauth:grant-type:device_code',
    'client_credentials',
  ])('a client that registers itself gets authorization codes, and not %s', async (grant) => {
    for (const [metadata, grants] of [
      [CONFIDENTIAL, []],
      [{ redirect_uris: ['https://client.example/callback'] }, ['authorization_code']],
    ] as const) {
      const asked = { ...metadata, grant_types: [grant] };
      const { status, json } = await app.client().post('/oauth/register', asked);
      expect([status, json.grant_types]).toEqual([201, grants]);
    }
  });

  it('is limited as the other authentication endpoints are', async () => {
    const address = newAddress();
    const ask = () =>
      app.client().send('POST', '/oauth/fido2/challenge', {
        address,
        body: 'client_id=svc-cli',
        headers: { 'content-type': 'application/x-www-form-urlencoded', origin: '' },
      });
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(0);
    expect(answers.every(({ headers }) => headers.get('x-ratelimit-limit') === '8')).toBe(true);
  });

  it('counts successes and failures', async () => {
    const metered = await startTestApp({
      environment: { SVC_METRICS_BEARER_TOKEN: 'a token for a scraper' },
    });
    try {
      const { key: own } = await metered.enrolled('ada@metrics.example');
      for (const origin of [NATIVE_ORIGIN, 'https://evil.example']) {
        const asked = await postForm(metered, '/oauth/fido2/challenge', { client_id: 'svc-cli' });
        await postForm(metered, '/oauth/token', {
          grant_type: FIDO2,
          client_id: 'svc-cli',
          scope: 'openid',
          state: asked.json.state as string,
          assertion: assertion(asked.json.publicKey, origin, own),
        });
      }
      const headers = { authorization: 'Bearer a token for a scraper' };
      const { text } = await metered.client().get('/metrics', { headers });
      expect(text).toContain('svc_auth_events_total{event_type="fido2_login_success"} 1');
      expect(text).toContain('svc_auth_events_total{event_type="fido2_login_failure"} 1');
      expect(text).toContain('svc_credential_issuance_total{type="oidc"} 1');
    } finally {
      await metered.close();
    }
  });
});
