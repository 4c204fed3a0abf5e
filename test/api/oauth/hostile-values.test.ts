import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, addWebApplication, type Application } from '../../support/applications.js';
import { newAddress, type Client } from '../../support/client.js';
import {
  CALLBACK,
  assertionFields,
  fapiMetadata,
  newClientKeys,
  newPkce,
  postForm,
} from '../../support/oauth-flow.js';

describe('values that the database cannot store and parsers do not expect', () => {
  let app: TestApp;
  let service: Application;
  let web: Application;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled('ada@hostile.example'));
    web = await addWebApplication(app, 'ada@hostile.example');
    service = await addApplication(
      app,
      {
        token_endpoint_auth_method: 'client_secret_basic',
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
      },
      { owner: 'ada@hostile.example' },
    );
  });
  afterAll(() => app.close());

  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  });

  it.each([
    ['/oauth/authorize?client_id=a%00b', 400],
    ['/oauth/logout?client_id=a%00b', 400],
    ['/oauth/register/a%00b', 401],
  ])('GET %s is %i', async (path, status) => {
    expect((await app.client().get(path)).status).toBe(status);
  });

  it.each<readonly [string, Readonly<Record<string, string>>]>([
    ['/oauth/token', { grant_type: 'authorization_code', code: '\0' }],
    ['/oauth/introspect', { token: 'a\0' }],
    ['/oauth/revoke', { token: 'a\0' }],
    ['/oauth/par', { client_id: '\0' }],
  ])('U+0000 in a form to %s is refused in the error format of OAuth', async (path, fields) => {
    const answer = await postForm(app, path, fields);
    expect([answer.status, answer.json]).toMatchObject([400, { error: 'invalid_request' }]);
  });

  it('U+0000 in the name of a client that authenticates causes no fault', async () => {
    const answer = await postForm(
      app,
      '/oauth/token',
      { grant_type: 'client_credentials' },
      basic('a%00b', 'c%00'),
    );
    expect([answer.status, answer.json]).toMatchObject([400, { error: 'invalid_request' }]);
  });

  it.each([
    ['deep', `{"id_token":{"x":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`],
    ['no claims', '[]'],
  ])('claims that are %s cause no fault', async (_, claims) => {
    const keys = await newClientKeys();
    const { clientId } = await addApplication(app, fapiMetadata(keys), {
      owner: 'ada@hostile.example',
    });
    const answer = await postForm(app, '/oauth/par', {
      ...(await assertionFields(app, clientId, keys)),
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
      claims,
    });
    expect([answer.status, answer.json.error]).toEqual([400, 'invalid_request']);
  });

  it.each(['\\u0000', '\\ud800', '\\udc00x'])(
    'claims with %s, which the database cannot store, are a mistake of the client',
    async (escape) => {
      const query = new URLSearchParams({
        client_id: web.clientId,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
        claims: `{"userinfo":{"name":{"value":"${escape}"}}}`,
      });
      const answer = await ada.get(`/oauth/authorize?${query.toString()}`);
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('not text')]);
    },
  );

  it('U+0000 in signed values of a client causes no fault', async () => {
    const keys = await newClientKeys();
    const { clientId } = await addApplication(
      app,
      {
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [keys.jwk] },
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
      },
      { owner: 'ada@hostile.example' },
    );
    const fields = {
      grant_type: 'client_credentials',
      ...(await assertionFields(app, clientId, keys, { jti: 'a\0b' })),
    };
    expect((await postForm(app, '/oauth/token', fields)).status).toBe(200);
    expect((await postForm(app, '/oauth/token', fields)).status).toBe(401);
  });

  it('a field that occurs ten thousand times is refused before it costs anything', async () => {
    const answer = await app.client().send('POST', '/oauth/token', {
      address: newAddress(),
      body: 'a=1&'.repeat(60_000),
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: '' },
    });
    expect([answer.status, answer.json]).toMatchObject([400, { error: 'invalid_request' }]);
  });

  it('a resource parameter that occurs twice is still two resources', async () => {
    const answer = await app.client().send('POST', '/oauth/token', {
      address: newAddress(),
      body: 'grant_type=client_credentials&resource=https%3A%2F%2Fa.example&resource=https%3A%2F%2Fb.example',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: '',
        ...basic(service.clientId, service.clientSecret ?? ''),
      },
    });
    expect(answer.json).toMatchObject({ error: 'invalid_target' });
  });

  it.each(['/oauth/token', '/oauth/par'])(
    'a resource of more than 2,048 characters is refused at %s, before it is stored',
    async (path) => {
      const ask = async (length: number) => {
        const start = 'https://a.example/';
        const { clientId, clientSecret } = path === '/oauth/token' ? service : web;
        const isForm = path === '/oauth/par';
        const fields = {
          ...(isForm && { client_id: clientId, client_secret: clientSecret }),
          grant_type: 'client_credentials',
          response_type: 'code',
          redirect_uri: CALLBACK,
          scope: 'openid',
          code_challenge: newPkce().challenge,
          code_challenge_method: 'S256',
          resource: start + 'a'.repeat(length - start.length),
        };
        return postForm(app, path, fields, isForm ? {} : basic(clientId, clientSecret));
      };
      expect((await ask(2_048)).status).toBeLessThan(300);
      const refused = await ask(2_049);
      expect([refused.status, refused.json]).toEqual([
        400,
        {
          error: 'invalid_target',
          error_description: 'a resource may have at most 2048 characters',
        },
      ]);
    },
  );

  it('a request object with thousands of resources is refused before any is looked up', async () => {
    const keys = await newClientKeys();
    const registered = await app.client().post(
      '/oauth/register',
      {
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'none',
        jwks: { keys: [keys.jwk] },
        request_object_signing_alg: 'ES256',
      },
      { address: newAddress() },
    );
    const clientId = String(registered.json.client_id);
    const push = async (resources: number) => {
      const request = await new SignJWT({
        client_id: clientId,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
        code_challenge: newPkce().challenge,
        code_challenge_method: 'S256',
        resource: Array.from({ length: resources }, () => 'https://a.example'),
      })
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer(clientId)
        .setAudience(app.baseUrl)
        .setExpirationTime('1m')
        .sign(keys.privateKey);
      return postForm(app, '/oauth/par', { client_id: clientId, request });
    };
    expect((await push(20)).status).toBe(201);
    const refused = await push(4_000);
    expect([refused.status, refused.json]).toEqual([
      400,
      {
        error: 'invalid_target',
        error_description: 'a request may name at most 20 resources',
      },
    ]);
  });

  it.each([
    ['redirect_uris that travel in the clear', { redirect_uris: ['http://app.example/callback'] }],
    [
      'more redirect_uris than anybody has',
      { redirect_uris: Array.from({ length: 21 }, (_, n) => `https://app.example/${n}`) },
    ],
    [
      'a subject that is no distinguished name',
      {
        redirect_uris: ['https://app.example/callback'],
        token_endpoint_auth_method: 'tls_client_auth',
        tls_client_auth_subject_dn: 'not a name',
      },
    ],
    [
      'more metadata than is kept',
      { redirect_uris: ['https://app.example/callback'], client_name: 'n'.repeat(16 * 1024) },
    ],
    ['an address with U+0000', { redirect_uris: ['https://app.example/\0'] }],
  ])('a client that registers itself with %s is refused', async (_, metadata) => {
    const answer = await app.client().post('/oauth/register', metadata);
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({ error: expect.stringMatching(/^invalid_/) });
  });

  it('a client that registers itself may redirect to its own machine', async () => {
    const answer = await app.client().post('/oauth/register', {
      redirect_uris: ['http://127.0.0.1:8400/callback'],
    });
    expect(answer.status).toBe(201);
  });
});
