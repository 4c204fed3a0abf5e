import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf, type Application } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { rows } from '../../support/rows.js';
import { withQuery } from '../../support/scim-requests.js';
import { CALLBACK, authorize, parameterOf, postForm } from '../../support/oauth-flow.js';

const ADA = 'ada@id-tokens.example';
const NAMES = { name: 'Ada Lovelace', given_name: 'Ada', family_name: 'Lovelace' };
const WEB = { name: 'Orders', type: 'web', redirect_uris: [CALLBACK] };
const API = '/api/v1/applications';

describe('ID tokens and userinfo', () => {
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp({ claims: () => NAMES });
    ({ client: ada } = await app.enrolled(ADA));
  });
  afterAll(() => app.close());

  const post = (path: string, body: object) => ada.post(path, body, { address: newAddress() });
  const registered = async (body: object): Promise<Application> => {
    const { status, json } = await post(API, {
      ...WEB,
      auth_method: 'client_secret_post',
      ...body,
    });
    expect(status).toBe(201);
    return { clientId: json.client_id as string, clientSecret: json.client_secret as string };
  };
  const issued = async ({ clientId, clientSecret }: Application, parameters: object) => {
    const url = await authorize(ada, {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      nonce: 'n',
      ...parameters,
    });
    const { status, json } = await postForm(app, '/oauth/token', {
      client_id: clientId,
      client_secret: clientSecret,
      grant_type: 'authorization_code',
      code: parameterOf(url, 'code'),
      redirect_uri: CALLBACK,
    });
    expect(status).toBe(200);
    return json as { id_token: string; access_token: string };
  };
  const userinfo = (token: string): Promise<Answer> =>
    app.client().get('/oauth/userinfo', { headers: { authorization: `Bearer ${token}` } });

  it.each<readonly [string, object]>([
    ['openid', {}],
    ['openid email', { email: ADA, email_verified: true }],
    ['openid profile', { name: 'Ada Lovelace' }],
    ['openid email profile', { email: ADA, email_verified: true, name: 'Ada Lovelace' }],
  ])('10.26 contain the claims of the granted scopes: %s', async (scope, expected) => {
    const tokens = await issued(await registered({}), { scope });
    const { email, email_verified, name } = claimsOf(tokens.id_token);
    const told = Object.entries({ email, email_verified, name });
    expect(Object.fromEntries(told.filter(([, value]) => value !== undefined))).toEqual(expected);
    expect((await userinfo(tokens.access_token)).json).toMatchObject(expected);
  });

  it('10.26 contain no claim that was requested only for userinfo', async () => {
    const claims = JSON.stringify({ userinfo: { name: { essential: true } } });
    const tokens = await issued(await registered({}), { scope: 'openid', claims });
    expect(claimsOf(tokens.id_token)).not.toHaveProperty('name');
    expect((await userinfo(tokens.access_token)).json.name).toBe('Ada Lovelace');
  });

  it('10.23 are valid for 300 seconds unless the owner sets another time, and for an hour at most', async () => {
    const lifetimeOf = async (application: Application) => {
      const { exp, iat } = claimsOf((await issued(application, { scope: 'openid' })).id_token);
      return Number(exp) - Number(iat);
    };
    expect(await lifetimeOf(await registered({}))).toBe(300);
    const long = await registered({ id_token_lifetime_seconds: 3600 });
    expect(await lifetimeOf(long)).toBe(3600);
    const body = { id_token_lifetime_seconds: null };
    const changed = await ada.send('PATCH', `${API}/${long.clientId}`, { body });
    expect(changed.json.id_token_lifetime_seconds).toBe(300);
    expect(await lifetimeOf(long)).toBe(300);
    for (const id_token_lifetime_seconds of [59, 3601, 60.5, '600']) {
      const refused = await post(API, { ...WEB, id_token_lifetime_seconds });
      expect([id_token_lifetime_seconds, refused.status]).toEqual([id_token_lifetime_seconds, 400]);
    }
  });

  it('10.23 outlive no session, and a client that registers itself cannot set their lifetime', async () => {
    const long = await registered({ id_token_lifetime_seconds: 3600 });
    await app.dataSource.query(
      "UPDATE sessions SET expires_at = now() + interval '900 s' WHERE level = 'verified'",
    );
    const { exp, iat } = claimsOf((await issued(long, { scope: 'openid' })).id_token);
    expect(Number(exp) - Number(iat)).toBeLessThanOrEqual(900);
    await app.dataSource.query(
      "UPDATE sessions SET expires_at = now() + interval '8 hours' WHERE level = 'verified'",
    );
    const metadata = {
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'client_secret_post',
      svc_id_token_lifetime: 3600,
      id_token_lifetime_seconds: 3600,
    };
    const { json } = await app.client().post('/oauth/register', metadata);
    const own = { clientId: json.client_id as string, clientSecret: json.client_secret as string };
    const claims = claimsOf((await issued(own, { scope: 'openid' })).id_token);
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(300);
  });

  it.each(['RS256', 'ES256'] as const)(
    '10.15 userinfo is signed with %s for a client that registered that',
    async (userinfo_signed_response_alg) => {
      const { json: discovery } = await app.client().get('/.well-known/openid-configuration');
      expect(discovery.userinfo_signing_alg_values_supported).toContain(
        userinfo_signed_response_alg,
      );
      const application = await registered({ userinfo_signed_response_alg });
      const tokens = await issued(application, { scope: 'openid email' });
      const answer = await userinfo(tokens.access_token);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/jwt']);
      const posted = await postForm(app, '/oauth/userinfo', { access_token: tokens.access_token });
      // the second response may be issued a second later
      const claims = { ...claimsOf(answer.text), iat: expect.any(Number) };
      expect([posted.status, claimsOf(posted.text)]).toEqual([200, claims]);
      const jwks = createLocalJWKSet((await app.client().get('/oauth/jwks')).json);
      const { payload } = await jwtVerify(answer.text, jwks, {
        issuer: app.baseUrl,
        audience: application.clientId,
        algorithms: [userinfo_signed_response_alg],
      });
      expect(payload).toMatchObject({
        sub: claimsOf(tokens.id_token)['sub'],
        email: ADA,
        email_verified: true,
      });
      const body = { userinfo_signed_response_alg: null };
      await ada.send('PATCH', `${API}/${application.clientId}`, { body });
      expect((await userinfo(tokens.access_token)).json.email).toBe(ADA);
    },
  );

  it('10.15 userinfo refuses a scope that the access token does not have with 403 (RFC 6750 §3.1)', async () => {
    const { access_token } = await issued(await registered({}), { scope: 'openid' });
    const scope = 'openid email';
    const headers = { authorization: `Bearer ${access_token}` };
    const byGet = await app.client().get(withQuery('/oauth/userinfo', { scope }), { headers });
    const byPost = await postForm(app, '/oauth/userinfo', { access_token, scope });
    for (const { status, json } of [byGet, byPost]) {
      expect([status, json.error]).toEqual([403, 'insufficient_scope']);
    }
  });

  it('10.15 a client that registers itself may have userinfo signed, and FAPI never with RS256', async () => {
    const metadata = { redirect_uris: [CALLBACK], userinfo_signed_response_alg: 'RS256' };
    const { json } = await app.client().post('/oauth/register', metadata);
    expect(json.userinfo_signed_response_alg).toBe('RS256');
    const fapi = await post(API, {
      ...WEB,
      profile: 'fapi2',
      jwks_uri: 'https://one.example/jwks',
      userinfo_signed_response_alg: 'RS256',
    });
    expect(fapi.status).toBe(400);
  });

  describe('authentication challenges', () => {
    const challengesOf = (answer: Answer) =>
      (answer.headers.get('www-authenticate') ?? '').match(/(?:^|, )(?:Bearer|DPoP|Basic) /g);
    const metadata = () =>
      `resource_metadata="${app.baseUrl}/.well-known/oauth-protected-resource"`;

    it.each<readonly [string, Record<string, string>, string]>([
      ['no token', {}, 'Bearer '],
      ['an unknown token', { authorization: 'Bearer nonsense' }, 'Bearer '],
      ['a token under DPoP without a proof', { authorization: 'DPoP nonsense' }, 'DPoP '],
    ])(
      '10.words are sent by userinfo for %s, with resource_metadata',
      async (_, headers, scheme) => {
        for (const method of ['GET', 'POST']) {
          const answer = await app.client().send(method, '/oauth/userinfo', { headers });
          expect(challengesOf(answer)).toEqual([scheme]);
          // a missing DPoP proof is `invalid_request`, with status 400
          expect(answer.status).toBe(scheme === 'DPoP ' ? 400 : 401);
          expect(answer.headers.get('www-authenticate')).toContain(metadata());
        }
      },
    );

    it.each(['token', 'introspect', 'revoke', 'par', 'device'])(
      '10.words are sent by /oauth/%s with a scheme to a client that it refuses',
      async (endpoint) => {
        const grant = { grant_type: 'client_credentials', token: 'x' };
        for (const fields of [
          { client_id: 'nobody', client_secret: 'wrong' },
          { client_id: 'nobody' },
          {},
        ]) {
          const answer = await postForm(app, `/oauth/${endpoint}`, { ...grant, ...fields });
          expect([answer.status, answer.json.error, challengesOf(answer)]).toEqual([
            401,
            'invalid_client',
            ['Basic '],
          ]);
        }
        const headers = { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` };
        const answer = await postForm(app, `/oauth/${endpoint}`, grant, headers);
        expect([answer.status, challengesOf(answer)]).toEqual([401, ['Basic ']]);
      },
    );
  });

  it('contain the names, the user name and the time of the last change with the scope profile, as far as they are known', async () => {
    const told = async (scope: string, claims?: object) => {
      const asked = claims ? { scope, claims: JSON.stringify(claims) } : { scope };
      const tokens = await issued(await registered({}), asked);
      const names = [...Object.keys(NAMES), 'preferred_username', 'updated_at'];
      const of = (all: Record<string, unknown>) =>
        Object.fromEntries(Object.entries(all).filter(([name]) => names.includes(name)));
      return [of(claimsOf(tokens.id_token)), of((await userinfo(tokens.access_token)).json)];
    };
    const changedAt = async () => {
      const text =
        'SELECT floor(extract(epoch FROM updated_at))::float8 AS at FROM users WHERE email = $1';
      return (await rows<{ at: number }>(app.dataSource, text, [ADA]))[0]?.at;
    };
    const upstream = { ...NAMES, preferred_username: ADA, updated_at: await changedAt() };
    expect(await told('openid profile')).toEqual([upstream, upstream]);
    expect(await told('openid email')).toEqual([{}, {}]);
    const single = { id_token: { given_name: null }, userinfo: { updated_at: null } };
    expect(await told('openid', single)).toEqual([
      { given_name: 'Ada' },
      { updated_at: upstream.updated_at },
    ]);

    const made = await post('/api/v1/org/scim-tokens', { description: 'a test' });
    const scim = (method: string, path: string, body?: object) =>
      app.client().send(method, `/scim/v2/Users${path}`, {
        address: newAddress(),
        ...(body ? { body } : {}),
        headers: { authorization: `Bearer ${made.json.token as string}`, origin: '' },
      });
    const [user] = (await scim('GET', '')).json.Resources as { id: string }[];
    // A record that names her address makes her its twin, who keeps the own user name.
    const second = await scim('POST', '', { userName: 'second@id-tokens.example' });
    const named = await scim('PATCH', `/${second.json.id as string}`, {
      Operations: [{ op: 'add', path: 'emails', value: [{ value: ADA, type: 'work' }] }],
    });
    expect(named.status).toBe(200);
    expect(await told('openid profile')).toEqual([upstream, upstream]);

    const changed = await scim('PATCH', `/${user?.id}`, {
      Operations: [
        { op: 'replace', path: 'userName', value: 'Ada.L' },
        { op: 'replace', path: 'name', value: { formatted: 'Ada King', givenName: 'Ada' } },
        { op: 'replace', path: 'displayName', value: 'Ada King' },
      ],
    });
    expect(changed.status).toBe(200);
    const managed = {
      name: 'Ada King',
      given_name: 'Ada',
      family_name: 'Lovelace',
      preferred_username: 'Ada.L',
      updated_at: await changedAt(),
    };
    expect(await told('openid profile')).toEqual([managed, managed]);
    const { json } = await app.client().get('/.well-known/openid-configuration');
    expect(json.claims_supported).toEqual(
      expect.arrayContaining([...Object.keys(NAMES), 'preferred_username', 'updated_at']),
    );
  });
});

describe('while the session of a browser cannot be saved', () => {
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
  });
  afterAll(() => app.close());

  it.each([
    ['57P01', 503, 'unavailable'],
    ['40P01', 503, 'unavailable'],
    ['23514', 500, 'internal'],
  ])(
    '10.23 SQLSTATE %s gives an error page of the service, and a log line',
    async (state, status, code) => {
      const { clientId } = await addApplication(
        app,
        {
          redirect_uris: [CALLBACK],
          grant_types: ['authorization_code'],
          response_types: ['code'],
        },
        { owner: ADA },
      );
      const query = new URLSearchParams({
        client_id: clientId,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
      });
      await app.dataSource.query(`
      CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '${state}'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON oauth_artifacts FOR EACH ROW
        WHEN (NEW.model = 'Session') EXECUTE FUNCTION refuse()`);
      app.log.length = 0;
      const answer = await ada.get(`/oauth/authorize?${query.toString()}`, {
        address: newAddress(),
      });
      await app.dataSource.query('DROP TRIGGER refuse ON oauth_artifacts');
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        status,
        'text/html; charset=utf-8',
      ]);
      expect(answer.headers.get('retry-after')).toBe(status === 503 ? '1' : null);
      expect(answer.headers.get('location')).toBeNull();
      expect(answer.headers.getSetCookie()).toEqual([]);
      expect(answer.text).not.toContain('refused');
      const lines = app.log.map((line) => JSON.parse(line) as Record<string, unknown>);
      const id = answer.headers.get('x-fapi-interaction-id');
      expect(lines).toContainEqual(
        expect.objectContaining({ level: 'error', code, interactionId: id }),
      );
      const again = await ada.get(`/oauth/authorize?${query.toString()}`, {
        address: newAddress(),
      });
      expect(again.status).toBe(303);
    },
  );
});
