import { X509Certificate, generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '#platform/clock/clock.js';
import { basicConstraints, issueCertificate } from '@svc/stand-ins/certificates';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf, type Application } from '../../support/applications.js';
import type { Answer, Client } from '../../support/client.js';
import {
  CALLBACK,
  authorize,
  newDpopKey,
  newPkce,
  parameterOf,
  postForm,
} from '../../support/oauth-flow.js';
import { auditOf, count, rows } from '../../support/rows.js';
import { startSecureApp, type SecureApp } from '../../support/secure-app.js';

const ADA = 'ada@exchange.example';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const ORDERS = 'https://orders.example/api';
const BILLING = 'https://billing.example/api';

/** The headers of a token request, and the browser whose user it is about. */
interface Asking {
  readonly headers?: Record<string, string>;
  readonly browser?: Client;
}

describe('token exchange (RFC 8693)', () => {
  let app: TestApp;
  let ada: Client;
  let adasKey: SoftwareKey;
  let web: Application;
  let backend: Application;
  let outsider: Application;
  const confidential = { token_endpoint_auth_method: 'client_secret_post' };
  const exchanging = {
    ...confidential,
    redirect_uris: [],
    response_types: [],
    grant_types: [EXCHANGE, 'client_credentials'],
    svc_resource_scopes: 'orders:read orders:write billing:read admin:all',
  };
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada, key: adasKey } = await app.enrolled(ADA));
    await app.enrolled('eve@outside.example');
    web = await addApplication(
      app,
      {
        ...confidential,
        redirect_uris: [CALLBACK],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        svc_resource_scopes: 'orders:read orders:write billing:read',
      },
      { owner: ADA },
    );
    backend = await addApplication(app, exchanging, { owner: ADA });
    outsider = await addApplication(app, exchanging, { owner: 'eve@outside.example' });
  });
  afterAll(() => app.close());

  const as = ({ clientId, clientSecret }: Application) => ({
    client_id: clientId,
    client_secret: clientSecret,
  });
  async function tokens(
    scope: string,
    resource?: string,
    { headers = {}, browser = ada }: Asking = {},
  ): Promise<{ access_token: string; id_token: string }> {
    const { verifier, challenge } = newPkce();
    const url = await authorize(browser, {
      client_id: web.clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...(resource === undefined ? {} : { resource }),
    });
    const answer = await postForm(
      app,
      '/oauth/token',
      {
        ...as(web),
        grant_type: 'authorization_code',
        code: parameterOf(url, 'code'),
        code_verifier: verifier,
        redirect_uri: CALLBACK,
        ...(resource === undefined || scope.includes('openid') ? {} : { resource }),
      },
      headers,
    );
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return answer.json as { access_token: string; id_token: string };
  }
  const subjectToken = async (...asked: Parameters<typeof tokens>) =>
    (await tokens(...asked)).access_token;
  const exchange = (fields: Record<string, string>, client = backend, headers = {}) =>
    postForm(
      app,
      '/oauth/token',
      { ...as(client), grant_type: EXCHANGE, subject_token_type: ACCESS_TOKEN, ...fields },
      headers,
    );
  const refusal = [400, 'invalid_request'];
  const outcomeOf = ({ status, json }: Answer) => [status, json.error];
  const introspect = (token: string, client = backend) =>
    postForm(app, '/oauth/introspect', { ...as(client), token });

  it('gives a token of the same user, narrower, that ends no later than the subject token', async () => {
    const subject = await subjectToken('orders:read orders:write', ORDERS);
    const answer = await exchange({ subject_token: subject, scope: 'orders:read' });
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        access_token: expect.any(String) as string,
        expires_in: expect.any(Number) as number,
        issued_token_type: ACCESS_TOKEN,
        token_type: 'Bearer',
        scope: 'orders:read',
      },
    ]);
    const token = claimsOf(answer.json.access_token as string);
    const before = claimsOf(subject);
    expect(token).toMatchObject({
      sub: before['sub'],
      aud: ORDERS,
      client_id: backend.clientId,
      scope: 'orders:read',
      hardware_verified: true,
      auth_time: before['auth_time'],
    });
    expect(Number(token['exp'])).toBeLessThanOrEqual(Number(before['exp']));
    expect((await introspect(answer.json.access_token as string)).json.active).toBe(true);
    const audit = await auditOf(app.dataSource, ADA);
    expect(audit.find(({ type }) => type === 'token_exchange')?.details).toEqual({
      client_id: backend.clientId,
      subject_client_id: web.clientId,
      scope: 'orders:read',
      audience: ORDERS,
    });
  });

  it('leaves a grant that ends soon after the token, because a user may have a limited number', async () => {
    const subject = await subjectToken('orders:read', ORDERS);
    const answer = await exchange({ subject_token: subject });
    expect(answer.status).toBe(200);
    const { expires_in: seconds } = answer.json as { expires_in: number };
    const [grant] = await rows<{ left: number }>(
      app.dataSource,
      `SELECT extract(epoch FROM expires_at - created_at)::float8 AS left FROM oauth_grants
       WHERE client_id = $1 ORDER BY created_at DESC LIMIT 1`,
      [backend.clientId],
    );
    expect(grant?.left).toBeGreaterThan(seconds);
    expect(grant?.left).toBeLessThan(seconds + 90);
  });

  it('an opaque token gives, at a resource of its grant, only scopes that both have', async () => {
    const subject = await subjectToken('openid email orders:read', ORDERS);
    const same = await exchange({ subject_token: subject, scope: 'openid' });
    expect([same.status, same.json.scope]).toEqual([200, 'openid']);
    const headers = { authorization: `Bearer ${same.json.access_token}` };
    expect((await app.client().get('/oauth/userinfo', { headers })).status).toBe(200);
    const there = await exchange({ subject_token: subject, resource: ORDERS });
    expect([there.status, there.json.scope]).toEqual([200, 'openid email']);
    expect(claimsOf(there.json.access_token as string)['aud']).toBe(ORDERS);
    const wider = await exchange({
      subject_token: subject,
      resource: ORDERS,
      scope: 'orders:read',
    });
    expect(outcomeOf(wider)).toEqual([400, 'invalid_scope']);
  });

  it('a token is exchanged under either name of its type, and again by its receiver', async () => {
    const subject = await subjectToken('orders:read', ORDERS);
    const jwt = 'urn:ietf:params:oauth:token-type:jwt';
    const first = await exchange({ subject_token: subject, subject_token_type: jwt });
    const again = await exchange({ subject_token: first.json.access_token as string });
    expect([again.status, again.json.scope]).toEqual([200, 'orders:read']);
  });

  it.each([undefined, ORDERS])(
    'never lives longer than the subject token (%s)',
    async (resource) => {
      const subject = await subjectToken(resource ? 'orders:read' : 'openid', resource);
      await app.dataSource.query(
        `UPDATE oauth_artifacts SET payload = jsonb_set(payload, '{exp}', to_jsonb($1::bigint))
       WHERE model = 'AccessToken'`,
        [Math.floor(Date.now() / 1000) + 100],
      );
      const { status, json } = await exchange({ subject_token: subject });
      expect([status, json.expires_in]).toEqual([200, expect.any(Number)]);
      expect(json.expires_in).toBeGreaterThan(40);
      expect(json.expires_in).toBeLessThanOrEqual(100);
      const introspected = (await introspect(json.access_token as string)).json;
      expect(introspected.exp - introspected.iat).toBe(json.expires_in);
    },
  );

  it.each([undefined, ORDERS])(
    'states one lifetime, even if the library writes the token a second later (%s)',
    async (resource) => {
      const subject = await subjectToken(resource ? 'orders:read' : 'openid', resource);
      const now = systemClock.seconds();
      const seconds = vi.spyOn(systemClock, 'seconds').mockReturnValue(now - 1);
      const { json } = await exchange({ subject_token: subject }).finally(() => {
        seconds.mockRestore();
      });
      const { exp, iat } = (await introspect(json.access_token as string)).json;
      expect(exp - iat).toBe(json.expires_in);
    },
  );

  it.each<readonly [string, Record<string, string>, string]>([
    [
      'a scope that the subject token lacks',
      { scope: 'orders:read orders:write' },
      'invalid_scope',
    ],
    ['a scope of the exchanging client’s own', { scope: 'admin:all' }, 'invalid_scope'],
    ['an OpenID scope beside', { scope: 'orders:read openid' }, 'invalid_scope'],
    ['a scope of our own APIs', { scope: 'svc:credentials' }, 'invalid_scope'],
    ['another resource', { resource: BILLING }, 'invalid_target'],
    ['another audience', { audience: BILLING }, 'invalid_target'],
    ['another beside the same', { resource: ORDERS, audience: BILLING }, 'invalid_target'],
    ['the resource of the token by another spelling', { resource: `${ORDERS}/` }, 'invalid_target'],
  ])('never widens: %s', async (_, fields, error) => {
    const subject = await subjectToken('orders:read', ORDERS);
    const answer = await exchange({ subject_token: subject, ...fields });
    expect(outcomeOf(answer)).toEqual([400, error]);
  });

  it('never gives a client a scope that it is not registered for', async () => {
    const narrow = await addApplication(
      app,
      { ...exchanging, scope: 'openid', svc_resource_scopes: 'orders:write' },
      { owner: ADA },
    );
    const opaque = await exchange({ subject_token: await subjectToken('openid email') }, narrow);
    expect([opaque.status, opaque.json.scope]).toEqual([200, 'openid']);
    const subject = await subjectToken('orders:read orders:write', ORDERS);
    const there = await exchange({ subject_token: subject }, narrow);
    expect([there.status, there.json.scope]).toEqual([200, 'orders:write']);
    const asked = await exchange({ subject_token: subject, scope: 'orders:read' }, narrow);
    expect(outcomeOf(asked)).toEqual([400, 'invalid_scope']);
    const without = await addApplication(
      app,
      {
        ...confidential,
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      },
      { owner: ADA },
    );
    expect(outcomeOf(await exchange({ subject_token: subject }, without))[0]).toBe(400);
  });

  it('the service’s own address is not an audience, and a resource without consent is not one either', async () => {
    const subject = await subjectToken('openid');
    for (const resource of [app.baseUrl, ORDERS]) {
      const answer = await exchange({ subject_token: subject, resource });
      expect([resource, answer.json.error]).toEqual([resource, 'invalid_target']);
    }
  });

  it.each<readonly [string, () => Promise<string> | string]>([
    ['the cookie of a browser that is logged in', () => ada.cookie('svc_session') ?? ''],
    [
      'the cookie of a browser that is only signed in upstream',
      async () => {
        const browser = app.client();
        await browser.signIn(ADA);
        return browser.cookie('svc_session') ?? '';
      },
    ],
    ['an unknown token', () => 'x'.repeat(43)],
    [
      'a JWT with another signature',
      async () => tampered(await subjectToken('orders:read', ORDERS)),
    ],
    ['an ID token', async () => (await tokens('openid')).id_token],
    [
      'a token that was revoked',
      async () => {
        const token = await subjectToken('openid');
        await postForm(app, '/oauth/revoke', { ...as(web), token });
        return token;
      },
    ],
    [
      'a token that has expired',
      async () => {
        const token = await subjectToken('openid');
        await app.dataSource.query(
          `UPDATE oauth_artifacts SET payload = jsonb_set(payload, '{exp}', to_jsonb($1::bigint))
           WHERE model = 'AccessToken'`,
          [Math.floor(Date.now() / 1000) - 1],
        );
        return token;
      },
    ],
    [
      'a token of a client’s own',
      async () => {
        const answer = await postForm(app, '/oauth/token', {
          ...as(backend),
          grant_type: 'client_credentials',
        });
        return answer.json.access_token as string;
      },
    ],
    [
      'a token that is bound to a key',
      async () => {
        const dpop = await newDpopKey();
        return subjectToken('openid', undefined, {
          headers: { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) },
        });
      },
    ],
  ])('is refused: %s', async (_, token) => {
    const grants = await count(
      app.dataSource,
      `oauth_grants WHERE client_id = '${backend.clientId}'`,
    );
    const answer = await exchange({ subject_token: await token() });
    expect(outcomeOf(answer)).toEqual(refusal);
    expect(
      await count(app.dataSource, `oauth_grants WHERE client_id = '${backend.clientId}'`),
    ).toBe(grants);
  });

  it('a client does not receive tokens of users who did not consent to it', async () => {
    const subject = await subjectToken('openid');
    expect(outcomeOf(await exchange({ subject_token: subject }, outsider))).toEqual(refusal);
  });

  it('a user who consented to one client of another organization has not consented to the next', async () => {
    const { client: browser } = await app.enrolled('guest@outside.example');
    // a user outside the organization, who consents to this client on the consent page
    const subject = await subjectToken('openid', undefined, { browser });
    expect(outcomeOf(await exchange({ subject_token: subject }))).toEqual(refusal);
  });

  it('a token of svc-cli cannot be exchanged by another client', async () => {
    const { state, publicKey } = (
      await postForm(app, '/oauth/fido2/challenge', { client_id: 'svc-cli' })
    ).json as { state: string; publicKey: Parameters<SoftwareKey['get']>[0] };
    const credential = adasKey.get(publicKey, 'svc-native:svc-cli');
    const { json } = await postForm(app, '/oauth/token', {
      grant_type: 'urn:svc:params:oauth:grant-type:fido2',
      client_id: 'svc-cli',
      state,
      assertion: Buffer.from(JSON.stringify(credential)).toString('base64url'),
      scope: 'openid svc:credentials',
    });
    expect(json.scope).toBe('openid svc:credentials');
    const answer = await exchange({ subject_token: json.access_token as string });
    expect(outcomeOf(answer)).toEqual(refusal);
  });

  it('a token that is bound to a key needs a proof of that key, and the new token stays bound to it', async () => {
    const dpop = await newDpopKey();
    const proof = () => dpop.proof('POST', `${app.baseUrl}/oauth/token`);
    const subject = await subjectToken('openid', undefined, { headers: { dpop: await proof() } });
    const answer = await exchange({ subject_token: subject }, backend, { dpop: await proof() });
    expect([answer.status, answer.json.token_type]).toEqual([200, 'DPoP']);
    const introspected = await introspect(answer.json.access_token as string);
    expect(introspected.json.cnf).toEqual({ jkt: dpop.thumbprint });
    const other = await (await newDpopKey()).proof('POST', `${app.baseUrl}/oauth/token`);
    const stolen = await exchange({ subject_token: subject }, backend, { dpop: other });
    expect(outcomeOf(stolen)).toEqual(refusal);
  });

  it('a token of a deactivated user cannot be exchanged', async () => {
    const { client: browser } = await app.enrolled('leaver@exchange.example');
    const subject = await subjectToken('openid', undefined, { browser });
    await app.dataSource.query(
      "UPDATE users SET active = false WHERE email = 'leaver@exchange.example'",
    );
    expect(outcomeOf(await exchange({ subject_token: subject }))).toEqual(refusal);
  });

  it.each<readonly [string, Record<string, string>]>([
    [
      'another type of subject',
      { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' },
    ],
    [
      'another type of token',
      { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
    ],
    ['an actor', { actor_token: 'x', actor_token_type: ACCESS_TOKEN }],
    ['nothing to exchange', { subject_token: '' }],
  ])('is refused: %s', async (_, fields) => {
    const subject = await subjectToken('openid');
    const answer = await exchange({ subject_token: subject, ...fields });
    expect(outcomeOf(answer)).toEqual(refusal);
  });

  it('a client that does not authenticate has no exchange, with any registration', async () => {
    const spa = await addApplication(
      app,
      {
        redirect_uris: [],
        response_types: [],
        grant_types: [EXCHANGE],
        token_endpoint_auth_method: 'none',
      },
      { owner: ADA },
    );
    const subject = await subjectToken('openid');
    const answer = await postForm(app, '/oauth/token', {
      client_id: spa.clientId,
      grant_type: EXCHANGE,
      subject_token: subject,
      subject_token_type: ACCESS_TOKEN,
    });
    expect(outcomeOf(answer)).toEqual([400, 'unauthorized_client']);
  });

  it('the new token is bound to the key of its request, and ends with the session', async () => {
    const dpop = await newDpopKey();
    const { client: bob } = await app.enrolled('bob@exchange.example');
    const subject = await subjectToken('openid', undefined, { browser: bob });
    const answer = await exchange({ subject_token: subject }, backend, {
      dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`),
    });
    expect(answer.json.token_type).toBe('DPoP');
    const token = answer.json.access_token as string;
    expect((await introspect(token)).json).toMatchObject({
      active: true,
      cnf: { jkt: dpop.thumbprint },
    });
    await bob.post('/logout');
    expect((await introspect(token)).json).toEqual({ active: false });
  });
});

describe('token exchange with certificates (RFC 8705)', () => {
  let secure: SecureApp;
  beforeAll(async () => {
    secure = await startSecureApp();
  });
  afterAll(() => secure.app.close());

  it('a bound token needs the certificate, and the new token stays bound to it', async () => {
    const cookie = await secure.loggedIn(ADA);
    const { clientId, clientSecret } = await addApplication(
      secure.app,
      {
        redirect_uris: [CALLBACK],
        response_types: ['code'],
        grant_types: ['authorization_code', EXCHANGE],
        token_endpoint_auth_method: 'client_secret_post',
        tls_client_certificate_bound_access_tokens: true,
      },
      { owner: ADA },
    );
    const { verifier, challenge } = newPkce();
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const sent = await secure.get(secure.baseUrl, `/oauth/authorize?${query.toString()}`, {
      cookie,
    });
    const [mine, other] = [selfSigned(), selfSigned()];
    const ask = (fields: Record<string, string>, certificate: typeof mine) =>
      secure.post(
        secure.mutualTlsUrl,
        '/oauth/token',
        { client_id: clientId, client_secret: clientSecret, ...fields },
        certificate,
      );
    const redeemed = await ask(
      {
        grant_type: 'authorization_code',
        code: parameterOf(new URL(String(sent.headers['location'])), 'code'),
        code_verifier: verifier,
        redirect_uri: CALLBACK,
      },
      mine,
    );
    const exchanged = {
      grant_type: EXCHANGE,
      subject_token: redeemed.json.access_token as string,
      subject_token_type: ACCESS_TOKEN,
    };
    const stolen = await ask(exchanged, other);
    expect([stolen.status, stolen.json.error]).toEqual([400, 'invalid_request']);
    const answer = await ask(exchanged, mine);
    expect(answer.status).toBe(200);
    const introspected = await secure.post(secure.baseUrl, '/oauth/introspect', {
      client_id: clientId,
      client_secret: clientSecret,
      token: answer.json.access_token as string,
    });
    const fingerprint = new X509Certificate(mine.cert).fingerprint256.replaceAll(':', '');
    expect(introspected.json.cnf).toEqual({
      'x5t#S256': Buffer.from(fingerprint, 'hex').toString('base64url'),
    });
  });
});

/**
 * Returns a self-signed certificate, which no authority of the service has issued, and its key,
 * both in PEM.
 */
function selfSigned(): { readonly cert: string; readonly key: string } {
  const { pem, privateKey } = issueCertificate({
    subject: [['CN', 'on its own']],
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    extensions: [basicConstraints(false)],
    keys: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  });
  return { cert: pem, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** Returns a JWT with the same claims and a changed signature. */
function tampered(jwt: string): string {
  const [header, payload, signature = ''] = jwt.split('.');
  return [header, payload, `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`].join(
    '.',
  );
}
