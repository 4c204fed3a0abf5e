import { randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import {
  CALLBACK,
  authorize,
  fapiMetadata,
  newClientKeys,
  newPkce,
  parameterOf,
  postForm,
  type ClientKeys,
} from '../../support/oauth-flow.js';

const ADA = 'ada@client-requests.example';
const RESOURCE = 'https://orders.example/api';
const SECRET = { token_endpoint_auth_method: 'client_secret_post' };
const CODE = {
  redirect_uris: [CALLBACK],
  grant_types: ['authorization_code'],
  response_types: ['code'],
};

describe('requests of clients, and their authentication', () => {
  let app: TestApp;
  let ada: Client;
  let rsa: ClientKeys;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
    rsa = await newClientKeys('RS256');
  });
  afterAll(() => app.close());

  const client = (metadata: object) => addApplication(app, { ...metadata }, { owner: ADA });
  const as = ({ clientId, clientSecret }: Application) => ({
    client_id: clientId,
    client_secret: clientSecret,
  });
  const errorOf = ({ status, json }: Answer) => [status, json.error];
  const asked = (
    { clientId }: Pick<Application, 'clientId'>,
    parameters: Readonly<Record<string, string>> = {},
  ) => ({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid',
    ...parameters,
  });

  describe('PKCE and nonce', () => {
    const redeem = (web: Application, url: URL, fields: Record<string, string> = {}) =>
      postForm(app, '/oauth/token', {
        ...as(web),
        grant_type: 'authorization_code',
        code: parameterOf(url, 'code'),
        redirect_uri: CALLBACK,
        ...fields,
      });
    const pkceError = (url: URL) => [
      parameterOf(url, 'error'),
      parameterOf(url, 'error_description').includes('PKCE'),
    ];

    it('10.12 neither is required of a confidential client', async () => {
      const web = await client({ ...CODE, ...SECRET });
      const answer = await redeem(web, await authorize(ada, asked(web)));
      expect([answer.status, typeof answer.json.id_token]).toEqual([200, 'string']);
    });

    it('10.12 a code that was requested with PKCE is redeemed only with it', async () => {
      const web = await client({ ...CODE, ...SECRET });
      const { challenge, verifier } = newPkce();
      const pkce = { code_challenge: challenge, code_challenge_method: 'S256' };
      const without = await redeem(web, await authorize(ada, asked(web, pkce)));
      expect(errorOf(without)).toEqual([400, 'invalid_grant']);
      const url = await authorize(ada, asked(web, pkce));
      expect((await redeem(web, url, { code_verifier: verifier })).status).toBe(200);
      const plain = await authorize(ada, asked(web));
      expect(errorOf(await redeem(web, plain, { code_verifier: verifier }))).toEqual([
        400,
        'invalid_grant',
      ]);
    });

    it.each<readonly [string, object]>([
      ['a public client', { token_endpoint_auth_method: 'none' }],
      ['a client that registered require_pkce', { ...SECRET, require_pkce: true }],
    ])('10.12 PKCE is required of %s, with a nonce too', async (_, metadata) => {
      const one = await client({ ...CODE, ...metadata });
      expect(pkceError(await authorize(ada, asked(one, { nonce: 'n' })))).toEqual([
        'invalid_request',
        true,
      ]);
    });

    it('10.12 an owner may require PKCE of an application, and undo that', async () => {
      const { json } = await ada.post('/api/v1/applications', {
        name: 'Orders',
        type: 'web',
        redirect_uris: [CALLBACK],
        require_pkce: true,
      });
      expect(json.require_pkce).toBe(true);
      const one = { clientId: json.client_id as string };
      expect(pkceError(await authorize(ada, asked(one)))).toEqual(['invalid_request', true]);
      const changed = await ada.send('PATCH', `/api/v1/applications/${one.clientId}`, {
        body: { require_pkce: null },
      });
      expect([changed.status, changed.json.require_pkce]).toEqual([200, false]);
      expect(parameterOf(await authorize(ada, asked(one)), 'code')).not.toBe('');
    });

    it('10.12 a client that registers itself may require PKCE of itself', async () => {
      const register = (require_pkce: unknown) =>
        app
          .client()
          .post('/oauth/register', { ...CODE, ...SECRET, require_pkce }, { address: newAddress() });
      const { json } = await register(true);
      expect(json.require_pkce).toBe(true);
      const one = asked({ clientId: json.client_id as string });
      const go = (parameters: Record<string, string>) =>
        ada.get(`/oauth/authorize?${new URLSearchParams({ ...one, ...parameters }).toString()}`, {
          address: newAddress(),
        });
      expect((await go({ nonce: 'n' })).status).toBe(400);
      const { challenge } = newPkce();
      const pkce = { code_challenge: challenge, code_challenge_method: 'S256' };
      expect((await go(pkce)).headers.get('location')).toMatch(/^\/interaction\//);
      expect(errorOf(await register('yes'))).toEqual([400, 'invalid_client_metadata']);
    });
  });

  describe('client assertions and request objects', () => {
    const keyed = { token_endpoint_auth_method: 'private_key_jwt' };
    const signed = (
      clientId: string,
      claims: object,
      alg: string,
      { privateKey } = rsa,
      header: object = {},
    ) =>
      new SignJWT({ iss: clientId, aud: app.baseUrl, jti: randomUUID(), ...claims })
        .setProtectedHeader({ alg, kid: 'one', ...header })
        .setIssuedAt()
        .setExpirationTime('1m')
        .sign(privateKey);
    const token = async (
      clientId: string,
      claims: object,
      alg = 'RS256',
      keys = rsa,
      header: object = {},
    ) =>
      postForm(app, '/oauth/token', {
        grant_type: 'client_credentials',
        client_id: clientId,
        client_assertion: await signed(clientId, { sub: clientId, ...claims }, alg, keys, header),
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      });
    const service = { redirect_uris: [], response_types: [], grant_types: ['client_credentials'] };

    it('10.15 a client without FAPI may sign with RS256, for the issuer or the token endpoint', async () => {
      const { clientId } = await client({ ...service, ...keyed, jwks: { keys: [rsa.jwk] } });
      expect((await token(clientId, {})).status).toBe(200);
      expect((await token(clientId, { aud: `${app.baseUrl}/oauth/token` })).status).toBe(200);
      for (const aud of [
        `${app.baseUrl}/oauth/par`,
        `${app.baseUrl}/oauth/token/`,
        [app.baseUrl, 'https://other.example'],
        'https://other.example/oauth/token',
      ]) {
        expect([aud, ...errorOf(await token(clientId, { aud }))]).toEqual([
          aud,
          401,
          'invalid_client',
        ]);
      }
    });

    it.each([
      ['JWT', 200],
      ['application/jwt', 200],
      ['client-authentication+jwt', 200],
      ['oauth-authz-req+jwt', 401],
      ['application/OAuth-Authz-Req+JWT', 401],
      ['dpop+jwt', 401],
      ['at+jwt', 401],
      ['', 401],
    ])(
      'RFC 9101 §10.8 a JWT of the type "%s" as a client assertion is answered %i',
      async (typ, status) => {
        const { clientId } = await client({ ...service, ...keyed, jwks: { keys: [rsa.jwk] } });
        expect((await token(clientId, {}, 'RS256', rsa, { typ })).status).toBe(status);
      },
    );

    it.each([{ response_type: 'code' }, { redirect_uri: 'https://client.example/callback' }])(
      'RFC 8725 §3.12 a request object without a type is no client assertion: %j',
      async (parameters) => {
        const { clientId } = await client({ ...service, ...keyed, jwks: { keys: [rsa.jwk] } });
        expect(errorOf(await token(clientId, parameters))).toEqual([401, 'invalid_client']);
        expect((await token(clientId, {})).status).toBe(200);
      },
    );

    it('a pushed request of a client without FAPI may be signed for the called endpoint, the token endpoint or the issuer', async () => {
      const web = await client({ ...CODE, ...keyed, jwks: { keys: [rsa.jwk] } });
      const keys = await newClientKeys('ES256');
      const fapi = await client(fapiMetadata(keys));
      const push = async (one: typeof web, aud: unknown, alg: string, by = rsa) =>
        (
          await postForm(app, '/oauth/par', {
            ...asked(one, {
              nonce: 'n',
              code_challenge: newPkce().challenge,
              code_challenge_method: 'S256',
            }),
            client_assertion: await signed(one.clientId, { sub: one.clientId, aud }, alg, by),
            client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          })
        ).status;
      const audiences = ['', '/oauth/par', '/oauth/token', '/oauth/introspect', '/oauth/par/'].map(
        (path) => app.baseUrl + path,
      );
      const all = [...audiences, [`${app.baseUrl}/oauth/par`, 'https://other.example']];
      const statuses = [];
      for (const aud of all) {
        statuses.push([await push(web, aud, 'RS256'), await push(fapi, aud, 'ES256', keys)]);
      }
      expect(statuses).toEqual([
        [201, 201],
        [201, 401],
        [201, 401],
        [401, 401],
        [401, 401],
        [401, 401],
      ]);
    });

    it('10.15 a FAPI client may do neither', async () => {
      const keys = await newClientKeys('ES256');
      const fapi = { ...fapiMetadata(keys), ...service };
      const es = await client(fapi);
      const aud = `${app.baseUrl}/oauth/token`;
      expect(errorOf(await token(es.clientId, { aud }, 'ES256', keys))).toEqual([
        401,
        'invalid_client',
      ]);
      const rs = await client({ ...fapi, jwks: { keys: [rsa.jwk] } });
      expect(errorOf(await token(rs.clientId, {}))).toEqual([401, 'invalid_client']);
    });

    it('10.15 a request object may be signed with RS256', async () => {
      const web = await client({
        ...CODE,
        ...SECRET,
        jwks: { keys: [rsa.jwk] },
        request_object_signing_alg: 'RS256',
      });
      const request = await signed(
        web.clientId,
        asked(web, { state: 'of the object', nonce: 'n' }),
        'RS256',
      );
      const url = await authorize(ada, { client_id: web.clientId, request });
      expect([parameterOf(url, 'state'), parameterOf(url, 'code')]).toEqual([
        'of the object',
        expect.stringMatching(/./),
      ]);
    });

    it('10.15 a client that registers unusable keys is refused', async () => {
      const { jwk: p384 } = await newClientKeys('ES384');
      const { alg: _, ...unnamed } = rsa.jwk;
      const register = (metadata: object) =>
        app.client().post('/oauth/register', { ...CODE, ...metadata }, { address: newAddress() });
      const withKey = (jwk: object) => ({ ...keyed, jwks: { keys: [jwk] } });
      for (const unusable of [
        withKey(p384),
        withKey({ ...unnamed, alg: 'RS512' }),
        withKey({ ...unnamed, use: 'enc' }),
        { ...withKey(rsa.jwk), token_endpoint_auth_signing_alg: 'ES256' },
        { ...SECRET, ...withKey(rsa.jwk), request_object_signing_alg: 'ES256' },
        { ...SECRET, jwks: { keys: [p384] } },
      ]) {
        expect(errorOf(await register(unusable))).toEqual([400, 'invalid_client_metadata']);
      }
      expect((await register(withKey(rsa.jwk))).status).toBe(201);
      const fapi = { name: 'n', type: 'web', redirect_uris: [CALLBACK], profile: 'fapi2' };
      const jwks = { keys: [rsa.jwk] };
      const refused = await ada.post('/api/v1/applications', { ...fapi, jwks });
      expect([refused.status, refused.json.detail]).toEqual([400, expect.stringContaining('jwks')]);
      const usable = { keys: [unnamed] }; // the key has no `alg`, and suits PS256
      expect((await ada.post('/api/v1/applications', { ...fapi, jwks: usable })).status).toBe(201);
    });
  });

  describe('scopes', () => {
    const scoped = { ...CODE, ...SECRET, svc_resource_scopes: 'orders:read orders:write' };
    const push = async (web: Application, parameters: Record<string, string>) =>
      postForm(app, '/oauth/par', {
        ...asked(web, parameters),
        ...as(web),
      });

    it.each<readonly [string, Record<string, string>]>([
      ['an unknown one', { scope: 'nonsense' }],
      ['an unknown one beside others', { scope: 'openid nonsense' }],
      ['one of our own APIs', { scope: 'openid svc:admin' }],
      ['one of a resource that is not named', { scope: 'openid orders:read' }],
      ['one that the client did not register', { scope: 'orders:delete', resource: RESOURCE }],
      ['none that means anything here', { scope: 'address phone' }],
    ])('10.15 a pushed request is refused for %s', async (_, parameters) => {
      expect(errorOf(await push(await client(scoped), parameters))).toEqual([400, 'invalid_scope']);
    });

    it.each<readonly [Record<string, string>]>([
      [{ scope: 'openid email profile' }],
      [{ scope: 'openid address phone offline_access' }],
      [{ scope: 'openid orders:read', resource: RESOURCE }],
      [{ scope: 'orders:read orders:write', resource: RESOURCE }],
    ])('10.15 a pushed request is accepted: %o', async (parameters) => {
      expect((await push(await client(scoped), parameters)).status).toBe(201);
    });

    it('10.15 unknown scopes are ignored at the authorization endpoint, while a known one is left', async () => {
      const web = await client(scoped);
      const request = (scope: string) => authorize(ada, asked(web, { scope }));
      for (const scope of ['openid address phone', 'openid nonsense']) {
        expect(parameterOf(await request(scope), 'code')).not.toBe('');
      }
      const nothing = await request('nonsense');
      expect(parameterOf(nothing, 'error')).toBe('invalid_scope');
    });

    it('10.21 lists the scopes that a client may ask for', async () => {
      for (const path of ['openid-configuration', 'oauth-authorization-server']) {
        const { json } = await app.client().get(`/.well-known/${path}`);
        expect(json.scopes_supported).toEqual(['openid', 'profile', 'email']);
      }
    });

    describe('scopes of client credentials', () => {
      const service = {
        ...SECRET,
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
        svc_resource_scopes: 'orders:read orders:write',
      };
      const own = (one: Application, fields: Record<string, string> = {}) =>
        postForm(app, '/oauth/token', {
          ...as(one),
          grant_type: 'client_credentials',
          ...fields,
        });

      it.each([
        [{ scope: 'orders:read' }, 'orders:read'],
        [{}, 'orders:read orders:write'],
      ])('10.21 are granted without a resource, and returned: %o', async (fields, scope) => {
        const one = await client(service);
        const { status, json } = await own(one, fields);
        expect([status, json.scope]).toEqual([200, scope]);
        const token = json.access_token as string;
        expect(token).not.toContain('.');
        const state = await postForm(app, '/oauth/introspect', { ...as(one), token });
        expect(state.json).toMatchObject({
          active: true,
          scope,
          aud: one.clientId,
          client_id: one.clientId,
          hardware_verified: false,
        });
      });

      it('10.21 include no others, and open no API of the service', async () => {
        const one = await client(service);
        expect(errorOf(await own(one, { scope: 'orders:delete' }))).toEqual([400, 'invalid_scope']);
        expect(errorOf(await own(one, { scope: 'svc:admin' }))).toEqual([400, 'invalid_scope']);
        const other = await client(service);
        const resource = `urn:svc:client:${other.clientId}`;
        expect(errorOf(await own(one, { resource }))).toEqual([400, 'invalid_target']);
        const { json } = await own(one);
        const headers = { authorization: `Bearer ${json.access_token}` };
        for (const path of ['/v1/keys', '/api/v1/applications', '/oauth/userinfo']) {
          expect([path, (await app.client().get(path, { headers })).status]).toEqual([path, 401]);
        }
      });
    });
  });
});
