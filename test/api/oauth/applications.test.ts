import { generateKeyPairSync } from 'node:crypto';
import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import { basicConstraints, issueCertificate } from '@svc/stand-ins/certificates';
import { startTestApp, type TestApp } from '../../support/app.js';
import { claimsOf } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { sendSecurely } from '../../support/https-client.js';
import {
  CALLBACK,
  assertionFields,
  authorize,
  newClientKeys,
  newDpopKey,
  newPkce,
  parameterOf,
  postForm,
} from '../../support/oauth-flow.js';
import { DpopKey } from '../../support/dpop-key.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { count, rows } from '../../support/rows.js';
import { startSecureApp } from '../../support/secure-app.js';

const API = '/api/v1/applications';
const NOBODYS = '01890000-0000-7000-8000-000000000000';
const WEB = { name: 'Orders', type: 'web', redirect_uris: [CALLBACK] };
const SERVICE = { name: 'Nightly', type: 'service', scopes: ['orders:read', 'orders:write'] };
const RESOURCE = 'https://orders.example';

let app: TestApp;
/**
 * Ada is the first user of her organization and its admin. Bob is a member of it, and eve belongs
 * to another organization.
 */
let ada: Client;
let bob: Client;
let eve: Client;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@applications.example'));
  ({ client: bob } = await app.enrolled('bob@applications.example'));
  ({ client: eve } = await app.enrolled('eve@elsewhere.example'));
});
afterAll(() => app.close());

/** Calls the API of applications with a user's session, from a new IP address. */
function api(browser: Client, method: string, path = '', body?: unknown): Promise<Answer> {
  const options = { address: newAddress() };
  return browser.send(method, API + path, body === undefined ? options : { ...options, body });
}

/** Registers an application, and returns the JSON of the response. */
async function registered(browser: Client, body: object) {
  const answer = await api(browser, 'POST', '', body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.json as { client_id: string; client_secret: string; [name: string]: unknown };
}

function basic(id: string, secret: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}

/** Requests a token by the client-credentials grant (RFC 6749 §4.4) with a secret. */
function serviceToken(id: string, secret: string, fields: Record<string, string> = {}) {
  const form = { grant_type: 'client_credentials', ...fields };
  return postForm(app, '/oauth/token', form, basic(id, secret));
}

/** Authorizes an application as a user, and returns the fields that redeem the code. */
async function newCode(browser: Client, clientId: string, redirectUri = CALLBACK, query = {}) {
  const { verifier, challenge } = newPkce();
  const url = await authorize(browser, {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'openid email',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...query,
  });
  const form = { grant_type: 'authorization_code', redirect_uri: redirectUri };
  return { url, form: { ...form, code: parameterOf(url, 'code'), code_verifier: verifier } };
}

async function isActive(token: string, id: string, secret: string): Promise<unknown> {
  const answer = await postForm(app, '/oauth/introspect', { token }, basic(id, secret));
  expect(answer.status).toBe(200);
  return answer.json.active;
}

describe('each type of application, registered and used', () => {
  it('web: signs a colleague in with a secret, without consent', async () => {
    const { client_id: id, client_secret: secret, ...rest } = await registered(ada, WEB);
    expect(rest).toMatchObject({
      name: 'Orders',
      type: 'web',
      profile: null,
      auth_method: 'client_secret_basic',
      grant_types: ['authorization_code'],
      redirect_uris: [CALLBACK],
      sender_constraint: null,
    });
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
    const { form } = await newCode(bob, id);
    const answer = await postForm(app, '/oauth/token', form, basic(id, secret));
    expect([answer.status, answer.json.token_type]).toEqual([200, 'Bearer']);
    expect(claimsOf(answer.json.id_token as string)).toMatchObject({
      aud: id,
      hardware_verified: true,
    });
  });

  it('web: authenticates with a signed assertion when it registered a key', async () => {
    const keys = await newClientKeys();
    const { client_id: id, ...rest } = await registered(ada, {
      ...WEB,
      auth_method: 'private_key_jwt',
      jwks: { keys: [keys.jwk] },
    });
    expect(rest).not.toHaveProperty('client_secret');
    const { form } = await newCode(ada, id);
    const fields = { ...(await assertionFields(app, id, keys)), ...form };
    expect((await postForm(app, '/oauth/token', fields)).status).toBe(200);
  });

  it('spa: has no secret, and must use PKCE', async () => {
    const { client_id: id, ...rest } = await registered(ada, { ...WEB, type: 'spa' });
    expect(rest).toMatchObject({ type: 'spa', auth_method: 'none' });
    expect(rest).not.toHaveProperty('client_secret');
    const bare = await authorize(ada, {
      client_id: id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      nonce: 'a nonce',
    });
    expect(parameterOf(bare, 'error')).toBe('invalid_request');
    const { form } = await newCode(ada, id);
    expect((await postForm(app, '/oauth/token', { ...form, client_id: id })).status).toBe(200);
  });

  it('native: accepts any port of its loopback address, or its own scheme', async () => {
    const { client_id: id, ...rest } = await registered(ada, {
      name: 'Terminal',
      type: 'native',
      redirect_uris: ['http://127.0.0.1/done', 'com.example.app:/done'],
    });
    expect(rest).toMatchObject({ auth_method: 'none', grant_types: ['authorization_code'] });
    for (const redirectUri of ['http://127.0.0.1:50123/done', 'com.example.app:/done']) {
      const { url, form } = await newCode(ada, id, redirectUri);
      expect(url.href).toMatch(redirectUri);
      expect((await postForm(app, '/oauth/token', { ...form, client_id: id })).status).toBe(200);
    }
    const noDevice = await postForm(app, '/oauth/device', { client_id: id });
    expect([noDevice.status, noDevice.json.error]).toEqual([400, 'unauthorized_client']);
  });

  it('native: gets device codes when it registered that grant', async () => {
    const { client_id: id } = await registered(ada, {
      name: 'Television',
      type: 'native',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
    });
    const answer = await postForm(app, '/oauth/device', { client_id: id, scope: 'openid' });
    expect([answer.status, answer.json.user_code]).toEqual([200, expect.any(String)]);
  });

  it('service: gets its own tokens, and a JWT with its scopes for a resource', async () => {
    const { client_id: id, client_secret: secret, ...rest } = await registered(ada, SERVICE);
    expect(rest).toMatchObject({ type: 'service', grant_types: ['client_credentials'] });
    const jwt = await serviceToken(id, secret, { resource: RESOURCE, scope: 'orders:read' });
    expect(jwt.status).toBe(200);
    expect(decodeProtectedHeader(jwt.json.access_token as string)).toMatchObject({
      typ: 'at+jwt',
      alg: 'ES256',
    });
    expect(claimsOf(jwt.json.access_token as string)).toMatchObject({
      aud: RESOURCE,
      client_id: id,
      scope: 'orders:read',
    });
    const opaque = await serviceToken(id, secret);
    expect([opaque.status, opaque.json.access_token]).toEqual([
      200,
      expect.not.stringMatching(/\./),
    ]);
    for (const { json } of [jwt, opaque]) {
      expect(await isActive(json.access_token as string, id, secret)).toBe(true);
    }
  });

  it('10.words service: its tokens contain hardware_verified false, and open no API of the service', async () => {
    const { client_id: id, client_secret: secret } = await registered(ada, SERVICE);
    const answers = [
      await serviceToken(id, secret),
      await serviceToken(id, secret, { resource: RESOURCE }),
    ];
    for (const { json } of answers) {
      const token = json.access_token as string;
      const state = await postForm(app, '/oauth/introspect', { token }, basic(id, secret));
      expect(state.json).toMatchObject({ active: true, client_id: id, hardware_verified: false });
      for (const claim of ['hardware_aaguid', 'amr', 'acr', 'email']) {
        expect(state.json).not.toHaveProperty(claim);
      }
      for (const path of [API, '/v1/keys']) {
        const headers = { authorization: `Bearer ${token}` };
        expect([path, (await app.client().get(path, { headers })).status]).toEqual([path, 401]);
        const planted = app.client();
        planted.setCookie('svc_session', token);
        expect([path, (await planted.get(path)).status]).toEqual([path, 401]);
      }
    }
    for (const scope of ['svc:applications', 'svc:credentials', 'svc:admin']) {
      expect([scope, (await serviceToken(id, secret, { scope })).json.error]).toEqual([
        scope,
        'invalid_scope',
      ]);
    }
  });

  it('service: gets no codes, and a web application gets no client credentials tokens', async () => {
    const service = await registered(ada, SERVICE);
    const web = await registered(ada, WEB);
    const refused = await serviceToken(web.client_id, web.client_secret);
    expect([refused.status, refused.json.error]).toEqual([400, 'unauthorized_client']);
    const query = new URLSearchParams({
      client_id: service.client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
    });
    const page = await ada.get(`/oauth/authorize?${query.toString()}`, { address: newAddress() });
    expect([page.status, page.headers.get('location')]).toEqual([400, null]);
  });

  it('FAPI: pushed requests, a key instead of a secret, DPoP and ES256 by default', async () => {
    const keys = await newClientKeys();
    const { client_id: id, ...rest } = await registered(ada, {
      ...WEB,
      profile: 'fapi2',
      jwks: { keys: [keys.jwk] },
    });
    expect(rest).toMatchObject({
      profile: 'fapi2',
      auth_method: 'private_key_jwt',
      sender_constraint: 'dpop',
    });
    expect(rest).not.toHaveProperty('client_secret');
    const unpushed = await newCode(ada, id);
    expect(parameterOf(unpushed.url, 'error')).toBe('invalid_request');

    const { verifier, challenge } = newPkce();
    const pushed = await postForm(app, '/oauth/par', {
      ...(await assertionFields(app, id, keys)),
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const { request_uri: requestUri } = pushed.json as { request_uri: string };
    const url = await authorize(ada, { client_id: id, request_uri: requestUri });
    const redeem = async (headers: Record<string, string>) =>
      postForm(
        app,
        '/oauth/token',
        {
          ...(await assertionFields(app, id, keys)),
          grant_type: 'authorization_code',
          code: parameterOf(url, 'code'),
          code_verifier: verifier,
          redirect_uri: CALLBACK,
        },
        headers,
      );
    // refused: it is without a certificate or DPoP
    expect((await redeem({})).json.error).toBe('invalid_grant');
    const dpop = await newDpopKey();
    const answer = await redeem({ dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) });
    expect([answer.status, answer.json.token_type]).toEqual([200, 'DPoP']);
    expect(decodeProtectedHeader(answer.json.id_token as string).alg).toBe('ES256');
  });
});

describe('a FAPI service with a certificate', () => {
  it('gets tokens only with it, bound to it by default', async () => {
    const authority = issueAuthority('Authority of the services', new Date());
    const secure = await startSecureApp({ SVC_MTLS_CLIENT_CA_CERTS: authority.pem });
    try {
      const answer = await sendSecurely(secure.baseUrl + API, {
        ca: secure.authority.ca,
        method: 'POST',
        headers: { cookie: await secure.loggedIn('ada@tls.example'), origin: secure.baseUrl },
        text: JSON.stringify({
          name: 'Payments',
          type: 'service',
          profile: 'fapi2',
          auth_method: 'tls_client_auth',
          tls_client_auth_subject_dn: 'CN=payments,O=Example',
        }),
      });
      expect([answer.status, answer.json.sender_constraint]).toEqual([201, 'mtls']);
      const identity = (name: string) => {
        const { pem, privateKey } = issueCertificate(
          {
            subject: [
              ['O', 'Example'],
              ['CN', name],
            ],
            notBefore: new Date(Date.now() - 60_000),
            notAfter: new Date(Date.now() + 3_600_000),
            extensions: [basicConstraints(false)],
            keys: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
          },
          authority,
        );
        return { cert: pem, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
      };
      const form = {
        grant_type: 'client_credentials',
        client_id: answer.json.client_id as string,
        resource: RESOURCE,
      };
      const ask = (name: string) =>
        secure.post(secure.mutualTlsUrl, '/oauth/token', form, identity(name));
      const token = await ask('payments');
      expect([token.status, claimsOf(token.json.access_token as string)['cnf']]).toEqual([
        200,
        { 'x5t#S256': expect.any(String) },
      ]);
      expect((await ask('somebody')).status).toBe(401);
    } finally {
      await secure.app.close();
    }
  });
});

describe('a registration', () => {
  it('is changed at once by the given fields, and null restores a default', async () => {
    const { client_id: id, client_secret: secret } = await registered(ada, {
      ...WEB,
      sender_constraint: 'dpop',
    });
    const other = 'https://client.example/other';
    const changed = await api(ada, 'PATCH', `/${id}`, {
      name: 'Renamed',
      redirect_uris: [other],
      sender_constraint: null,
    });
    expect([changed.status, changed.json]).toEqual([
      200,
      expect.objectContaining({ name: 'Renamed', redirect_uris: [other], sender_constraint: null }),
    ]);
    expect((await api(ada, 'GET', `/${id}`)).json).toEqual(changed.json);
    const { form } = await newCode(ada, id, other);
    expect((await postForm(app, '/oauth/token', form, basic(id, secret))).status).toBe(200);
  });

  it('loses a redirect URI also for a user who is at the login page', async () => {
    const { client_id: id } = await registered(ada, WEB);
    const { client: carl, key } = await app.enrolled('carl@applications.example');
    const visit = (path: string) => carl.get(path, { address: newAddress() });
    const locationOf = ({ headers }: Answer) => headers.get('location') ?? '';
    const asked = new URLSearchParams({
      client_id: id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      prompt: 'login',
    });
    const waiting = locationOf(await visit(`/oauth/authorize?${asked.toString()}`));
    const change = { redirect_uris: ['https://client.example/other'] };
    expect((await api(ada, 'PATCH', `/${id}`, change)).status).toBe(200);
    await carl.logIn(key, { address: newAddress() });
    const resumed = await visit(locationOf(await visit(waiting)));
    expect([resumed.status, locationOf(resumed)]).toEqual([400, '']);
    expect(resumed.text).toContain('Unknown return URL');
  });

  it('is unchanged when a change is refused', async () => {
    const { client_id: id } = await registered(ada, WEB);
    const before = (await api(ada, 'GET', `/${id}`)).json;
    for (const change of [
      { redirect_uris: [] },
      { profile: 'fapi2' },
      { auth_method: 'none' },
      { grant_types: ['client_credentials'] },
      { type: 'service' },
      { owner_id: NOBODYS },
    ]) {
      const answer = await api(ada, 'PATCH', `/${id}`, change);
      expect([change, answer.status, answer.json.code]).toEqual([change, 400, 'invalid_request']);
    }
    expect((await api(ada, 'GET', `/${id}`)).json).toEqual(before);
  });

  it('loses its secrets with the change to a key, and has none until one is added after the change back', async () => {
    const { jwk } = await newClientKeys();
    const { client_id: id, client_secret: secret } = await registered(ada, SERVICE);
    const change = (body: object) => api(ada, 'PATCH', `/${id}`, body);
    expect((await change({ auth_method: 'private_key_jwt', jwks: { keys: [jwk] } })).status).toBe(
      200,
    );
    expect((await serviceToken(id, secret)).json.error).toBe('invalid_client');
    expect((await api(ada, 'GET', `/${id}/secrets`)).json).toEqual({ secrets: [] });
    const useless = await api(ada, 'POST', `/${id}/secrets`);
    expect([useless.status, useless.json.code]).toEqual([400, 'invalid_request']);
    expect((await change({ auth_method: null })).status).toBe(200);
    const refused = await serviceToken(id, secret);
    expect([refused.status, refused.json.error]).toEqual([401, 'invalid_client']);
    const added = await api(ada, 'POST', `/${id}/secrets`);
    expect((await serviceToken(id, added.json.client_secret as string)).status).toBe(200);
  });

  it('is deleted with every token', async () => {
    const { client_id: id, client_secret: secret } = await registered(ada, SERVICE);
    const watcher = await registered(ada, SERVICE);
    const token = (await serviceToken(id, secret)).json.access_token as string;
    expect(await isActive(token, watcher.client_id, watcher.client_secret)).toBe(true);
    const answer = await api(ada, 'DELETE', `/${id}`);
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(await isActive(token, watcher.client_id, watcher.client_secret)).toBe(false);
    expect((await serviceToken(id, secret)).json.error).toBe('invalid_client');
    expect((await api(ada, 'GET', `/${id}`)).status).toBe(404);
    expect((await api(ada, 'DELETE', `/${id}`)).status).toBe(404);
  });
});

describe('client secrets', () => {
  const DAY = 86_400_000;

  it('overlap: both are valid until the older one has expired', async () => {
    const { client_id: id, client_secret: first } = await registered(ada, SERVICE);
    const answer = await api(ada, 'POST', `/${id}/secrets`);
    expect(answer.status).toBe(201);
    expect(answer.headers.get('cache-control')).toContain('no-store');
    const { client_secret: second, secrets } = answer.json as {
      client_secret: string;
      secrets: { id: string; expires_at: string | null }[];
    };
    expect(secrets.map(({ id: one }) => one)[0]).toBe(answer.json.id);
    expect(secrets[0]?.expires_at).toBeNull();
    const rest = Date.parse(secrets[1]?.expires_at ?? '') - Date.now();
    expect(rest).toBeGreaterThan(DAY - 60_000);
    expect(rest).toBeLessThanOrEqual(DAY);
    for (const secret of [first, second]) expect((await serviceToken(id, secret)).status).toBe(200);

    await app.dataSource.query(
      'UPDATE oauth_client_secrets SET expires_at = now() WHERE client_id = $1 AND expires_at IS NOT NULL',
      [id],
    );
    const stale = await serviceToken(id, first);
    expect([stale.status, stale.json.error]).toEqual([401, 'invalid_client']);
    expect((await serviceToken(id, second)).status).toBe(200);
  });

  it('end at once when they are deleted, or rotated without an overlap', async () => {
    const { client_id: id, client_secret: first } = await registered(ada, SERVICE);
    const rotated = await api(ada, 'POST', `/${id}/secrets`);
    const second = rotated.json.client_secret as string;
    const firstId = rotated.json.secrets[1].id as string;
    const deleted = await api(ada, 'DELETE', `/${id}/secrets/${firstId}`);
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    expect((await serviceToken(id, first)).status).toBe(401);
    expect((await serviceToken(id, second)).status).toBe(200);
    expect((await api(ada, 'DELETE', `/${id}/secrets/${firstId}`)).status).toBe(404);

    const body = { expires_previous_in_seconds: 0 };
    const third = (await api(ada, 'POST', `/${id}/secrets`, body)).json.client_secret as string;
    expect((await serviceToken(id, second)).status).toBe(401);
    expect((await serviceToken(id, third)).status).toBe(200);

    const { secrets } = (await api(ada, 'GET', `/${id}/secrets`)).json as {
      secrets: { id: string }[];
    };
    expect((await api(ada, 'DELETE', `/${id}/secrets/${secrets[0]?.id}`)).status).toBe(204);
    const none = await serviceToken(id, third);
    expect([none.status, none.json.error]).toEqual([401, 'invalid_client']);
  });

  it('are never extended by a rotation', async () => {
    const { client_id: id } = await registered(ada, SERVICE);
    await api(ada, 'POST', `/${id}/secrets`, { expires_previous_in_seconds: 60 });
    const answer = await api(ada, 'POST', `/${id}/secrets`, { expires_previous_in_seconds: 3600 });
    const ends = (answer.json.secrets as { expires_at: string | null }[]).map(
      ({ expires_at: end }) =>
        end === null ? null : Math.ceil((Date.parse(end) - Date.now()) / 60_000),
    );
    expect(ends).toEqual([null, 60, 1]);
  });

  it('are three at most, also when all are added at once', async () => {
    const { client_id: id } = await registered(ada, SERVICE);
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => api(ada, 'POST', `/${id}/secrets`)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 409, 409, 409, 409]);
    const full = answers.find(({ status }) => status === 409);
    expect(full?.json).toMatchObject({ code: 'limit_reached', status: 409 });
    expect((await api(ada, 'GET', `/${id}/secrets`)).json.secrets).toHaveLength(3);
  });

  it('are shown once: no other response, no row and no log line contains them', async () => {
    const { client_id: id, client_secret: first } = await registered(ada, WEB);
    const second = (await api(ada, 'POST', `/${id}/secrets`)).json.client_secret as string;
    await newCode(ada, id).then(({ form }) =>
      postForm(app, '/oauth/token', form, basic(id, first)),
    );
    const answers = [
      await api(ada, 'GET'),
      await api(ada, 'GET', `/${id}`),
      await api(ada, 'GET', `/${id}/secrets`),
      await api(ada, 'PATCH', `/${id}`, { name: 'Other' }),
    ];
    const kept = await rows<{ kept: string }>(
      app.dataSource,
      `SELECT to_jsonb(c)::text || coalesce(to_jsonb(s)::text, '') AS kept
       FROM oauth_clients c LEFT JOIN oauth_client_secrets s ON s.client_id = c.id
       UNION ALL SELECT details::text FROM audit_events`,
    );
    const seen = [...answers.map(({ text }) => text), ...kept.map((row) => row.kept), ...app.log];
    for (const secret of [first, second]) {
      expect(seen.filter((text) => text.includes(secret))).toEqual([]);
    }
    const { secrets } = (await api(ada, 'GET', `/${id}/secrets`)).json as { secrets: object[] };
    expect(secrets.map((one) => Object.keys(one).toSorted())).toEqual([
      ['created_at', 'expires_at', 'id'],
      ['created_at', 'expires_at', 'id'],
    ]);
  });
});

describe('revoke-tokens', () => {
  it('ends every token, code and grant of the application at once, and of no other', async () => {
    const { client_id: id, client_secret: secret } = await registered(ada, WEB);
    const service = await registered(ada, SERVICE);
    const redeemed = await newCode(bob, id).then(({ form }) =>
      postForm(app, '/oauth/token', form, basic(id, secret)),
    );
    const token = redeemed.json.access_token as string;
    const waiting = await newCode(ada, id);
    const own = (await serviceToken(service.client_id, service.client_secret)).json
      .access_token as string;
    expect(await isActive(token, id, secret)).toBe(true);

    const answer = await api(ada, 'POST', `/${id}/revoke-tokens`);
    expect([answer.status, answer.json]).toEqual([200, { revoked: 1 }]);
    expect(await isActive(token, id, secret)).toBe(false);
    const userinfo = await app.client().get('/oauth/userinfo', {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(userinfo.status).toBe(401);
    const late = await postForm(app, '/oauth/token', waiting.form, basic(id, secret));
    expect([late.status, late.json.error]).toEqual([400, 'invalid_grant']);
    expect(await count(app.dataSource, 'oauth_grants WHERE client_id = $1', [id])).toBe(0);
    expect(await count(app.dataSource, 'oauth_artifacts WHERE client_id = $1', [id])).toBe(0);
    expect(await isActive(own, service.client_id, service.client_secret)).toBe(true);

    const { form } = await newCode(bob, id); // a user can still authorize the application
    expect((await postForm(app, '/oauth/token', form, basic(id, secret))).status).toBe(200);
  });

  it('ends the tokens of a service, JWTs too', async () => {
    const { client_id: id, client_secret: secret } = await registered(ada, SERVICE);
    const tokens = await Promise.all([
      serviceToken(id, secret),
      serviceToken(id, secret, { resource: RESOURCE }),
    ]);
    expect((await api(ada, 'POST', `/${id}/revoke-tokens`)).json).toEqual({ revoked: 2 });
    for (const { json } of tokens) {
      expect(await isActive(json.access_token as string, id, secret)).toBe(false);
    }
    expect((await api(ada, 'POST', `/${id}/revoke-tokens`)).json).toEqual({ revoked: 0 });
  });
});

describe('ownership of applications', () => {
  const acts = (id: string, secretId: string) =>
    [
      ['GET', `/${id}`],
      ['PATCH', `/${id}`, { name: 'Mine now' }],
      ['GET', `/${id}/secrets`],
      ['POST', `/${id}/secrets`],
      ['DELETE', `/${id}/secrets/${secretId}`],
      ['POST', `/${id}/revoke-tokens`],
      ['DELETE', `/${id}`],
    ] as const;
  const listed = async (browser: Client) =>
    ((await api(browser, 'GET')).json.applications as { client_id: string }[]).map(
      ({ client_id: id }) => id,
    );
  const newSecretId = async (browser: Client, id: string) =>
    (await api(browser, 'GET', `/${id}/secrets`)).json.secrets[0].id as string;

  it('hides them from a colleague, another organization and its admin', async () => {
    const mine = await registered(ada, SERVICE);
    const secretId = await newSecretId(ada, mine.client_id);
    for (const other of [bob, eve]) {
      for (const [method, path, body] of acts(mine.client_id, secretId)) {
        const answer = await api(other, method, path, body);
        expect([method, path, answer.status, answer.json.code]).toEqual([
          method,
          path,
          404,
          'not_found',
        ]);
      }
      expect(await listed(other)).not.toContain(mine.client_id);
    }
    expect((await serviceToken(mine.client_id, mine.client_secret)).status).toBe(200);
  });

  it('lets an admin manage those of the organization', async () => {
    const bobs = await registered(bob, SERVICE);
    expect(await listed(ada)).toContain(bobs.client_id);
    expect(await listed(bob)).toEqual([bobs.client_id]);
    const secretId = await newSecretId(ada, bobs.client_id);
    for (const [method, path, body] of acts(bobs.client_id, secretId)) {
      const answer = await api(ada, method, path, body);
      expect([method, path, answer.status < 300]).toEqual([method, path, true]);
    }
    expect(await listed(bob)).toEqual([]);
  });

  it('is not shared by users without an organization', async () => {
    const people = new OauthRows(app.dataSource);
    const [nina, nils] = [
      await people.user({ organization: false, admin: true }),
      await people.user({ organization: false }),
    ];
    const browserOf = async (person: typeof nina) => {
      const browser = app.client();
      browser.setCookie('svc_session', (await people.session(person)).token);
      return browser;
    };
    const [hers, his] = [await browserOf(nina), await browserOf(nils)];
    const { client_id: id, ...rest } = await registered(his, SERVICE);
    expect(rest).toMatchObject({ owner_id: nils.id, org_id: null });
    expect((await api(hers, 'GET', `/${id}`)).status).toBe(404);
    expect(await listed(hers)).toEqual([]);
  });

  it.each([
    ['our own client', 'svc-cli'],
    ['an unknown id', NOBODYS],
    ['an id that is none', 'a%00b'],
    ['a path', '..%2fapplications'],
  ])('hides %s', async (_, id) => {
    for (const [method, path, body] of acts(id, NOBODYS)) {
      expect([method, (await api(ada, method, path, body)).status]).toEqual([method, 404]);
    }
  });

  it('requires svc:applications of svc-cli, and svc:admin to act as an admin', async () => {
    const people = new OauthRows(app.dataSource);
    const admin = await people.user({ admin: true });
    const session = await people.session(admin);
    const member = app.client();
    member.setCookie('svc_session', session.token);
    const colleagues = await people.application(admin);
    await app.dataSource.query(`INSERT INTO users (id, org_id, email) VALUES ($1, $2, $3)`, [
      NOBODYS,
      admin.orgId,
      `other@${admin.email.split('@')[1]}`,
    ]);
    await app.dataSource.query('UPDATE oauth_clients SET owner_id = $1 WHERE id = $2', [
      NOBODYS,
      colleagues,
    ]);
    const key = await DpopKey.generate();
    const path = `${API}/${colleagues}`;
    const ask = async (scope: string) => {
      const token = await people.token(admin, { payload: { scope, jkt: key.jkt } });
      const dpop = await key.proof('GET', app.baseUrl + path, token);
      return app.client().get(path, { headers: { authorization: `DPoP ${token}`, dpop } });
    };
    const without = await ask('svc:credentials svc:admin');
    expect([without.status, without.json.code]).toEqual([403, 'insufficient_scope']);
    expect((await ask('svc:applications')).status).toBe(404);
    expect((await ask('svc:applications svc:admin')).status).toBe(200);
    expect((await api(member, 'GET', `/${colleagues}`)).status).toBe(200);
  });

  it('requires a session verified by a key, and a page of the service’s origin', async () => {
    const people = new OauthRows(app.dataSource);
    const bootstrap = app.client();
    const { token } = await people.session(await people.user(), { level: 'bootstrap' });
    bootstrap.setCookie('svc_session', token);
    expect((await api(bootstrap, 'GET')).json.code).toBe('hardware_required');
    expect((await app.client().get(API)).status).toBe(401);
    const forged = await ada.post(API, SERVICE, { headers: { origin: 'https://evil.example' } });
    expect([forged.status, forged.json.code]).toEqual([403, 'invalid_origin']);
  });

  it('stops the applications of a deactivated user until the user is active again', async () => {
    const email = 'max@applications.example';
    const { client: max } = await app.enrolled(email);
    const { client_id: id, client_secret: secret } = await registered(max, SERVICE);
    const watcher = await registered(ada, SERVICE);
    const setActive = (active: boolean) =>
      app.dataSource.query('UPDATE users SET active = $1 WHERE email = $2', [active, email]);
    const issued = await serviceToken(id, secret);
    const seen = () =>
      isActive(issued.json.access_token as string, watcher.client_id, watcher.client_secret);
    expect([issued.status, await seen()]).toEqual([200, true]);
    await setActive(false);
    const refused = await serviceToken(id, secret);
    expect([refused.status, refused.json.error]).toEqual([401, 'invalid_client']);
    expect(await seen()).toBe(false);
    await setActive(true);
    expect((await serviceToken(id, secret)).status).toBe(200);
  });

  it('is limited to 50 applications, also when the last ones are registered at once', async () => {
    const { client: zoe } = await app.enrolled('zoe@many.example');
    await app.dataSource.query(
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
       SELECT gen_random_uuid()::text, 'application', '{}', u.id, u.org_id
       FROM users u, generate_series(1, 48) WHERE u.email = 'zoe@many.example'`,
    );
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => api(zoe, 'POST', '', SERVICE)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 409, 409, 409, 409]);
    const full = answers.find(({ status }) => status === 409);
    expect(full?.json.code).toBe('limit_reached');
    expect(full?.json.detail).toContain('50 applications');
  });

  it('is listed in pages', async () => {
    const people = new OauthRows(app.dataSource);
    const owner = await people.user({ admin: true });
    await app.dataSource.query(
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
       SELECT 'many-' || lpad(n::text, 3, '0'), 'application', '{}', $1, $2 FROM generate_series(1, 130) n`,
      [owner.id, owner.orgId],
    );
    const browser = app.client();
    browser.setCookie('svc_session', (await people.session(owner)).token);
    const first = await api(browser, 'GET');
    expect([first.json.applications.length, first.json.next]).toEqual([100, 'many-100']);
    const second = await api(browser, 'GET', '?after=many-100');
    expect([second.json.applications.length, second.json.next]).toEqual([30, null]);
  });
});

describe('a refused registration', () => {
  const KEY = { kty: 'EC', crv: 'P-256', x: 'a', y: 'b' };
  const native = (uri: string) => ({ name: 'n', type: 'native', redirect_uris: [uri] });
  const web = (uri: string) => ({ ...WEB, redirect_uris: [uri] });
  const KEYED = { ...WEB, auth_method: 'private_key_jwt' };

  it.each<readonly [string, object, RegExp]>([
    ['no name', { type: 'web' }, /^name: /],
    ['a name of two lines', { ...WEB, name: 'a\nb' }, /^name: must be one line/],
    ['an unknown type', { ...WEB, type: 'desktop' }, /^type: /],
    ['what is not known', { ...WEB, client_id: 'mine', svc_kind: 'first-party' }, /client_id/],
    ['an owner of their choice', { ...WEB, owner_id: NOBODYS }, /owner_id/],
    ['no redirect_uris', { name: 'n', type: 'web' }, /redirect_uris/],
    ['http', web('http://client.example/cb'), /^redirect_uris: must be https/],
    [
      'http to loopback for web in the FAPI profile',
      { ...KEYED, profile: 'fapi2', jwks: { keys: [{}] }, redirect_uris: ['http://localhost/cb'] },
      /^redirect_uris: must be https in the FAPI profile/,
    ],
    ['a fragment', web('https://client.example/cb#x'), /fragment/],
    ['an empty fragment', web('https://client.example/cb#'), /fragment/],
    ['a wildcard', web('https://*.client.example/cb'), /wildcard/],
    ['a backslash', web('https:\\\\client.example/cb'), /wildcard|to the letter/],
    ['a user in the address', web('https://a:b@client.example/cb'), /user/],
    ['a relative address', web('/cb'), /whole URLs/],
    ['a line break', web('https://client.example/\ncb'), /percent-encoded/],
    ['javascript:', native('javascript:alert(1)'), /^redirect_uris: must be https/],
    ['a scheme of one word', native('myapp:/cb'), /named after a domain/],
    ['http to another machine', native('http://192.0.2.1/cb'), /loopback/],
    [
      'where to go after logout',
      { ...WEB, post_logout_redirect_uris: ['http://a.example/'] },
      /^post_logout/,
    ],
    ['a service with redirects', { ...SERVICE, redirect_uris: [CALLBACK] }, /authorization_code/],
    [
      'a secret for spa',
      { ...WEB, type: 'spa', auth_method: 'client_secret_basic' },
      /^auth_method/,
    ],
    ['none for web', { ...WEB, auth_method: 'none' }, /^auth_method: .* must prove/],
    ['none for service', { ...SERVICE, auth_method: 'none' }, /^auth_method: .* must prove/],
    ['another grant', { ...WEB, grant_types: ['client_credentials'] }, /^grant_types: /],
    [
      'the grant of svc-cli',
      { ...WEB, grant_types: ['urn:svc:params:oauth:grant-type:fido2'] },
      /^grant_types/,
    ],
    ['refresh tokens', { ...WEB, grant_types: ['refresh_token'] }, /^grant_types/],
    [
      'a scope of ours',
      { ...SERVICE, scopes: ['svc:admin'] },
      /^scopes\.0: must not be a scope of/,
    ],
    [
      'a scope of ours to come',
      { ...SERVICE, scopes: ['svc:x'] },
      /^scopes\.0: must not be a scope of/,
    ],
    ['openid among its own', { ...SERVICE, scopes: ['openid'] }, /^scopes\.0: /],
    ['two scopes in one', { ...SERVICE, scopes: ['a svc:admin'] }, /^scopes\.0: /],
    ['no key for assertions', KEYED, /jwks/],
    ['keys twice', { ...KEYED, jwks: { keys: [KEY] }, jwks_uri: 'https://a.example/' }, /jwks/],
    [
      'a private key',
      { ...KEYED, jwks: { keys: [{ ...KEY, d: 'PRIVATE' }] } },
      /keys\[0\]\.d must not/,
    ],
    ['a shared key', { ...KEYED, jwks: { keys: [{ kty: 'oct', k: 'PRIVATE' }] } }, /symmetric/],
    ['keys inside', { ...KEYED, jwks_uri: 'https://10.0.0.1/jwks' }, /^jwks_uri: /],
    ['metadata services', { ...KEYED, jwks_uri: 'http://169.254.169.254/' }, /^jwks_uri: /],
    [
      'certificates without TLS',
      { ...WEB, auth_method: 'tls_client_auth', tls_client_auth_subject_dn: 'CN=a' },
      /^auth_method must be/,
    ],
    [
      'a subject that is none',
      { ...WEB, auth_method: 'tls_client_auth', tls_client_auth_subject_dn: 'a' },
      /RFC 4514/,
    ],
    [
      'a subject for nothing',
      { ...WEB, tls_client_auth_subject_dn: 'CN=a' },
      /tls_client_auth_subject_dn/,
    ],
    ['mTLS-bound without TLS', { ...WEB, sender_constraint: 'mtls' }, /^sender_constraint: /],
    [
      'FAPI with a secret',
      { ...WEB, profile: 'fapi2', auth_method: 'client_secret_basic' },
      /FAPI profile requires private_key_jwt/,
    ],
    ['FAPI for spa', { ...WEB, type: 'spa', profile: 'fapi2' }, /FAPI profile requires/],
    ['http request_uris', { ...WEB, request_uris: ['http://a.example/r'] }, /request_uris/],
  ])('is %s, with the reason', async (_, body, reason) => {
    const before = await count(app.dataSource, 'oauth_clients');
    const answer = await api(ada, 'POST', '', body);
    expect([answer.status, answer.json?.code]).toEqual([400, 'invalid_request']);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(answer.json.detail).toMatch(reason);
    expect(answer.text).not.toContain('PRIVATE');
    expect(await count(app.dataSource, 'oauth_clients')).toBe(before);
  });

  it('never logs a private key that was sent by mistake', () => {
    expect(app.log.join('')).not.toContain('PRIVATE');
  });

  it.each<readonly [string, unknown]>([
    ['a negative overlap', { expires_previous_in_seconds: -1 }],
    ['an overlap of 31 days', { expires_previous_in_seconds: 31 * 86_400 }],
    ['half a second', { expires_previous_in_seconds: 0.5 }],
    ['a secret of their choice', { client_secret: 'mine' }],
  ])('is a rotation with %s', async (_, body) => {
    const { client_id: id } = await registered(bob, SERVICE);
    const answer = await api(bob, 'POST', `/${id}/secrets`, body);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });
});

describe('the audit log', () => {
  it('has a row of every change, with the acting user and the owner of the application', async () => {
    const { client_id: id } = await registered(bob, SERVICE);
    await api(ada, 'PATCH', `/${id}`, { name: 'Renamed', scopes: [] });
    const { id: secretId } = (await api(bob, 'POST', `/${id}/secrets`)).json as { id: string };
    await api(ada, 'DELETE', `/${id}/secrets/${secretId}`);
    await api(bob, 'POST', `/${id}/revoke-tokens`);
    await api(ada, 'DELETE', `/${id}`);
    const found = await rows(
      app.dataSource,
      `SELECT e.type, e.class, split_part(a.email, '@', 1) AS actor, split_part(s.email, '@', 1) AS subject,
              e.org_id = s.org_id AS ours, e.details - 'client_id' AS details
       FROM audit_events e JOIN users a ON a.id = e.actor_id JOIN users s ON s.id = e.subject_id
       WHERE e.details ->> 'client_id' = $1 ORDER BY e.created_at, e.id`,
      [id],
    );
    const row = (type: string, actor: string, details: object, kind = 'admin') => ({
      type,
      class: kind,
      actor,
      subject: 'bob',
      ours: true,
      details,
    });
    expect(found).toEqual([
      row('oauth_client_registered', 'bob', { name: 'Nightly', type: 'service' }),
      row('oauth_client_updated', 'ada', { changed: ['name', 'scopes'] }),
      row('oauth_secret_added', 'bob', {
        secret_id: secretId,
        expires_previous_in_seconds: 86_400,
      }),
      row('oauth_secret_revoked', 'ada', { secret_id: secretId }),
      row('oauth_token_revoked', 'bob', { revoked: 0 }, 'oauth'),
      row('oauth_client_deleted', 'ada', { name: 'Renamed', type: 'service' }),
    ]);
  });
});
