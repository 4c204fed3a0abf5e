import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { claimsOf } from '../../support/applications.js';
import { newAddress, type Answer } from '../../support/client.js';
import { CALLBACK, authorize, newPkce, parameterOf, postForm } from '../../support/oauth-flow.js';
import { count, rows } from '../../support/rows.js';

interface Registered {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly registration_access_token: string;
}

const METADATA = {
  client_name: 'Harmless',
  redirect_uris: [CALLBACK],
  token_endpoint_auth_method: 'client_secret_post',
};

describe('clients that manage their registration (RFC 7592)', () => {
  let app: TestApp;
  let client: Registered;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    client = await register(METADATA);
  });

  async function register(metadata: object): Promise<Registered> {
    const answer = await app.client().post('/oauth/register', metadata);
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.json as Registered;
  }

  function manage(
    method: 'GET' | 'PUT' | 'DELETE',
    body?: object,
    { client_id: id, registration_access_token: token } = client,
  ): Promise<Answer> {
    return app.client().send(method, `/oauth/register/${id}`, {
      address: newAddress(),
      headers: { authorization: `Bearer ${token}`, origin: '' },
      ...(body ? { body: { client_id: id, ...body } } : {}),
    });
  }

  /** Returns true if a client secret is valid, by an introspection, which changes nothing. */
  async function isGood(secret: string | undefined): Promise<boolean> {
    const answer = await postForm(app, '/oauth/introspect', {
      token: 'none',
      client_id: client.client_id,
      client_secret: secret ?? '',
    });
    return answer.status === 200;
  }

  it('a client with a secret receives it once, and can read its other metadata', async () => {
    expect(await isGood(client.client_secret)).toBe(true);
    const read = await manage('GET');
    expect(read.status).toBe(200);
    expect(read.json).toMatchObject({ ...METADATA, client_id: client.client_id });
    expect(read.json).not.toHaveProperty('client_secret');
    expect(Object.keys(read.json as object).filter((name) => name.startsWith('svc_'))).toEqual([]);
  });

  it('an update with its own secret, or with none, changes the rest and keeps the secret', async () => {
    for (const [client_name, extra] of [
      ['With it', { client_secret: client.client_secret }],
      ['Without it', {}],
    ] as const) {
      const updated = await manage('PUT', { ...METADATA, client_name, ...extra });
      expect([updated.status, updated.json.client_name]).toEqual([200, client_name]);
      expect(updated.json).not.toHaveProperty('client_secret');
      expect(await isGood(client.client_secret)).toBe(true);
      client = { ...client, ...pick(updated) };
    }
  });

  it('an update with another secret is refused, and nothing changed', async () => {
    for (const client_secret of ['another', '.', '']) {
      const refused = await manage('PUT', { ...METADATA, client_name: 'Other', client_secret });
      expect([client_secret, refused.status]).toEqual([client_secret, 400]);
    }
    expect((await manage('GET')).json.client_name).toBe('Harmless');
    expect(await isGood(client.client_secret)).toBe(true);
  });

  it('a client that gives up its secret has none, and one that requests a secret receives a new one', async () => {
    const open = { ...METADATA, token_endpoint_auth_method: 'none' };
    const given = await manage('PUT', open);
    expect(given.status).toBe(200);
    const secrets = 'oauth_client_secrets WHERE client_id = $1';
    expect(await count(app.dataSource, secrets, [client.client_id])).toBe(0);
    expect(await isGood(client.client_secret)).toBe(false);

    client = { ...client, ...pick(given) };
    const back = await manage('PUT', METADATA);
    expect([back.status, typeof back.json.client_secret]).toEqual([200, 'string']);
    expect(back.json.client_secret).not.toBe(client.client_secret);
    expect(await isGood(back.json.client_secret)).toBe(true);
  });

  it('an update cannot set fields that a client may not set', async () => {
    const own = { svc_kind: 'first-party', svc_profile: 'fapi2', svc_org: client.client_id };
    await manage('PUT', {
      ...METADATA,
      ...own,
      scope: 'openid svc:admin',
      grant_types: ['authorization_code', 'client_credentials'],
    });
    const [row] = await rows<{ kind: string; metadata: Record<string, unknown> }>(
      app.dataSource,
      'SELECT kind, metadata FROM oauth_clients WHERE id = $1',
      [client.client_id],
    );
    expect(row).toMatchObject({
      kind: 'dynamic',
      metadata: { scope: 'openid', grant_types: ['authorization_code'] },
    });
    expect(Object.keys(row?.metadata ?? {}).filter((name) => name.startsWith('svc_'))).toEqual([]);
  });

  it('of ten updates at once with one registration access token, one takes effect', async () => {
    const updates = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        manage('PUT', { ...METADATA, client_name: `Number ${n}` }),
      ),
    );
    const [done, ...others] = updates.filter(({ status }) => status === 200);
    expect(others).toEqual([]);
    const refused = updates.filter(({ json }) => json.error === 'invalid_token');
    expect(refused.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 401));
    if (done) client = { ...client, ...pick(done) };
    expect((await manage('GET')).json.client_name).toBe(done?.json.client_name);
    const tokens = "oauth_artifacts WHERE model = 'RegistrationAccessToken' AND client_id = $1";
    expect(await count(app.dataSource, tokens, [client.client_id])).toBe(1);
  });

  it('the token of another client, or an unknown token, manages nothing', async () => {
    const other = await register(METADATA);
    for (const registration_access_token of [other.registration_access_token, 'nonsense']) {
      for (const method of ['GET', 'PUT', 'DELETE'] as const) {
        const refused = await manage(method, method === 'PUT' ? METADATA : undefined, {
          ...client,
          registration_access_token,
        });
        expect([method, refused.status]).toEqual([method, 401]);
      }
    }
    expect((await manage('GET')).status).toBe(200);
  });

  it('the JWT of a client names the address of its user only with the scope email', async () => {
    const { client: ada } = await app.enrolled('ada@jwt-address.example');
    const resource = 'https://api.jwt-address.example/';
    const claimsFor = async (scope: string) => {
      const { verifier, challenge } = newPkce();
      const sent = await authorize(ada, {
        client_id: client.client_id,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope,
        resource,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      });
      const answer = await postForm(app, '/oauth/token', {
        client_id: client.client_id,
        client_secret: client.client_secret ?? '',
        grant_type: 'authorization_code',
        code: parameterOf(sent, 'code'),
        code_verifier: verifier,
        redirect_uri: CALLBACK,
        resource,
      });
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
      return claimsOf(answer.json.access_token as string);
    };
    const plain = await claimsFor('openid');
    expect(plain).toMatchObject({ aud: resource, org_id: expect.any(String) as string });
    expect(plain).not.toHaveProperty('email');
    expect(await claimsFor('openid email')).toMatchObject({ email: 'ada@jwt-address.example' });
  });

  it.each(['form_post', 'form_post.jwt'])(
    'a client that registers the response mode %s is refused, because no response would reach it',
    async (mode) => {
      const post = (modes: readonly string[]) =>
        app.client().post('/oauth/register', { ...METADATA, response_modes: modes });
      for (const modes of [[mode], ['query', mode]]) {
        const { status, json } = await post(modes);
        expect([status, json.error]).toEqual([400, 'invalid_client_metadata']);
      }
      const update = await manage('PUT', { ...METADATA, response_modes: [mode] });
      expect([update.status, update.json.error]).toEqual([400, 'invalid_client_metadata']);
      expect((await post(['query', 'fragment', 'jwt'])).status).toBe(201);
    },
  );

  it('a deleted client is gone with its token, and cannot be restored', async () => {
    expect((await manage('DELETE')).status).toBe(204);
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      expect((await manage(method, method === 'PUT' ? METADATA : undefined)).status).toBe(401);
    }
    const left = 'oauth_clients WHERE id = $1';
    expect(await count(app.dataSource, left, [client.client_id])).toBe(0);
    expect(await isGood(client.client_secret)).toBe(false);
  });

  it('a client that was not used for 30 days has expired, and each use restarts the period', async () => {
    const age = (days: number) =>
      app.dataSource.query(
        `UPDATE oauth_clients SET last_used_at = now() - make_interval(days => $2),
           created_at = now() - make_interval(days => $2) WHERE id = $1`,
        [client.client_id, days],
      );
    await age(29);
    expect(await isGood(client.client_secret)).toBe(true);
    expect(
      await count(
        app.dataSource,
        `oauth_clients WHERE id = $1 AND last_used_at > now() - interval '1 min'`,
        [client.client_id],
      ),
    ).toBe(1);
    await age(31);
    expect(await isGood(client.client_secret)).toBe(false);
    expect((await manage('GET')).status).toBe(401);
  });

  it('every change is audited, without a secret', async () => {
    client = { ...client, ...pick(await manage('PUT', METADATA)) };
    await manage('DELETE');
    const found = await rows<{ type: string; details: object }>(
      app.dataSource,
      `SELECT type, details FROM audit_events WHERE details->>'client_id' = $1 ORDER BY id`,
      [client.client_id],
    );
    expect(found).toEqual(
      ['oauth_client_registered', 'oauth_client_updated', 'oauth_client_deleted'].map((type) => ({
        type,
        details: { client_id: client.client_id },
      })),
    );
  });
});

/** Returns the new registration access token of a response, if it has one. */
function pick({ json }: Answer): Partial<Registered> {
  const token = json.registration_access_token as string | undefined;
  return token === undefined ? {} : { registration_access_token: token };
}
