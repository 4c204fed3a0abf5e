import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { DpopKey } from '../support/dpop-key.js';
import { addKey, keysOf, touchedAgo } from '../support/keys.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { OauthRows, type UserRow } from '../support/oauth-rows.js';
import { idOf } from '../support/org-api.js';
import { withLateBody } from '../support/raw-http.js';
import { auditOf, count, rows } from '../support/rows.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const EXCLUDED = '73bb0cd4-e502-49b8-9c6f-b59445bf720b'; // YubiKey 5 FIPS Series

let app: TestApp;
let oauth: OauthRows;
beforeAll(async () => {
  app = await startTestApp();
  oauth = new OauthRows(app.dataSource);
});
afterAll(() => app.close());

let people = 0;
const newEmail = () => `ada@keys-${(people += 1)}.example`;

/** Creates a user with two keys, and a browser session for each key. */
async function withTwoKeys() {
  const email = newEmail();
  const { client, key } = await app.enrolled(email);
  const second = app.newKey();
  expect((await addKey(app, client, second, 'Spare')).status).toBe(200);
  const other = app.client();
  expect((await other.logIn(second)).status).toBe(200);
  const [first, spare] = await keysOf(app, email);
  if (!first || !spare) throw new Error('the user has no two keys');
  return { email, client, key, other, second, firstId: first.id, spareId: spare.id };
}

const remove = (browser: Client, id: string, headers: Record<string, string> = {}) =>
  browser.send('DELETE', `/v1/keys/${id}`, { address: newAddress(), headers });
const certificate = async (browser: Client) =>
  (await browser.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() })).json
    .serial as string;
const isRevoked = async (serial: string) =>
  (await app.client().get(`/v1/credentials/ssh/krl/${serial}`)).json.revoked as boolean;
const isIn = async (browser: Client) =>
  (await browser.get('/v1/keys', { address: newAddress() })).status === 200;
const events = async (email: string, type: string) =>
  (await auditOf(app.dataSource, email)).filter((event) => event.type === type);
const code = ({ status, json }: Answer) => [status, json?.code];

const rowOf = async (email: string): Promise<UserRow> => {
  const [key] = await keysOf(app, email);
  return { id: await idOf(app, email), email, orgId: null, keyId: key?.id ?? '' };
};

/**
 * Inserts a session and a DPoP-bound token of svc-cli for a user. Returns a function that sends
 * requests with the token.
 */
async function commandLine(email: string, scope = 'openid svc:credentials') {
  const person = await rowOf(email);
  const session = await oauth.session(person, { clientId: 'svc-cli' });
  const dpop = await DpopKey.generate();
  const token = await oauth.token(person, { session, payload: { scope, jkt: dpop.jkt } });
  const send = async (method: string, path: string, body?: unknown, key = dpop) =>
    app.client().send(method, path, {
      ...(body === undefined ? {} : { body }),
      headers: {
        origin: '',
        authorization: `DPoP ${token}`,
        dpop: await key.proof(method, app.baseUrl + path, token),
      },
    });
  return { session, token, send };
}

describe('POST /v1/keys/register', () => {
  it('adds a key that logs in, and keeps the session: excluded are the keys of the user', async () => {
    const email = newEmail();
    const { client } = await app.enrolled(email);
    const cookie = client.cookie('svc_session');
    const [{ credential_id: first } = { credential_id: '' }] = await rows<{
      credential_id: string;
    }>(
      app.dataSource,
      `SELECT encode(credential_id, 'base64') AS credential_id FROM authenticators WHERE user_id = $1`,
      [await idOf(app, email)],
    );
    const started = await client.post('/v1/keys/register/start', {});
    expect(started.status).toBe(200);
    expect(Object.keys(started.json)).toEqual(['state', 'publicKey']);
    expect(started.json.publicKey.excludeCredentials).toEqual([
      { type: 'public-key', id: Buffer.from(first, 'base64').toString('base64url') },
    ]);
    const key = app.newKey();
    const credential = key.create(started.json.publicKey, app.baseUrl);
    const body = { state: started.json.state, credential, name: ' Desk ' };
    const answer = await client.post('/v1/keys/register/complete', body);
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        key: {
          id: expect.any(String),
          name: 'Desk',
          aaguid: expect.any(String),
          model: null,
          created_at: expect.stringMatching(/Z$/),
          last_used_at: null,
          current: false,
          user_verification: true,
        },
        redirect_to: `${app.baseUrl}/account/keys`,
      },
    ]);
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(client.cookie('svc_session')).toBe(cookie);
    expect(await events(email, 'key_registered')).toEqual([
      expect.objectContaining({
        details: {
          key_id: answer.json.key.id,
          name: 'Desk',
          attestation: 'packed',
          aaguid: answer.json.key.aaguid,
          user_verified: true,
        },
      }),
    ]);
    expect((await app.client().logIn(key)).status).toBe(200);
  });

  it('lists the keys with the one of the session, and names a key without a name by its model', async () => {
    const { client, email } = await withTwoKeys();
    const model = 'fa2b99dc-9e39-4257-8f92-4a30d23c4118';
    const third = await addKey(app, client, app.newKey({ aaguid: model }));
    expect(third.json.key).toMatchObject({ aaguid: model, model: third.json.key.name });
    const { keys } = (await client.get('/v1/keys')).json;
    expect(keys.map((key: { current: boolean }) => key.current)).toEqual([true, false, false]);
    expect(await keysOf(app, email)).toHaveLength(3);
  });

  it.each([
    ['of another make', () => new SoftwareKey(), {}, 'attestation_rejected'],
    [
      'that checked no PIN',
      () => app.newKey(),
      { authenticatorSelection: { userVerification: 'discouraged' } },
      'user_verification_missing',
    ],
    [
      'that was made for another address',
      () => app.newKey(),
      { rp: { id: 'evil.example' } },
      'attestation_rejected',
    ],
  ])(
    'refuses a key %s by the policy of enrollment, audited',
    async (_name, newKey, changes, refusal) => {
      const email = newEmail();
      const { client } = await app.enrolled(email);
      const { state, publicKey } = (await client.post('/v1/keys/register/start', {})).json;
      const credential = newKey().create({ ...publicKey, ...changes }, app.baseUrl);
      const answer = await client.post('/v1/keys/register/complete', { state, credential });
      expect(code(answer)).toEqual([400, refusal]);
      expect(await keysOf(app, email)).toHaveLength(1);
      expect(await events(email, 'enrollment_refused')).toEqual([
        expect.objectContaining({ details: expect.objectContaining({ code: refusal }) }),
      ]);
    },
  );

  it('refuses a model that SVC_ALLOWED_AAGUIDS excludes', async () => {
    const strict = await startTestApp({
      environment: { SVC_ALLOWED_AAGUIDS: 'fa2b99dc-9e39-4257-8f92-4a30d23c4118' },
    });
    try {
      const client = strict.client();
      await client.signIn('ada@strict.example');
      await client.enroll(strict.newKey({ aaguid: 'fa2b99dc-9e39-4257-8f92-4a30d23c4118' }));
      const answer = await addKey(strict, client, strict.newKey({ aaguid: EXCLUDED }));
      expect(code(answer)).toEqual([400, 'model_not_allowed']);
    } finally {
      await strict.close();
    }
  });

  it('adds a U2F key, which proves presence only', async () => {
    const { client } = await app.enrolled(newEmail());
    const u2f = app.newKey({ format: 'fido-u2f' });
    const answer = await addKey(app, client, u2f);
    expect([answer.status, answer.json.key.user_verification]).toEqual([200, false]);
    expect((await client.logIn(u2f)).status).toBe(200); // in the owner's session, the key steps up
    const stranger = app.client();
    const { state, publicKey } = (await stranger.post('/login/webauthn/start', {})).json;
    const [{ id }] = (
      await client.post('/login/webauthn/start', {})
    ).json.publicKey.allowCredentials.slice(1);
    const credential = u2f.get(
      { ...publicKey, allowCredentials: [{ type: 'public-key', id }] },
      app.baseUrl,
    );
    const refused = await stranger.post('/login/webauthn/complete', { state, credential });
    expect(code(refused)).toEqual([400, 'assertion_rejected']);
  });

  it('refuses a credential that is registered, with 409 also for that of another user', async () => {
    const ada = await app.enrolled(newEmail());
    const eve = await app.enrolled(newEmail());
    const start = async ({ client }: EnrolledUser) =>
      (await client.post('/v1/keys/register/start', {}, { address: newAddress() })).json;
    const key = app.newKey();
    const { state, publicKey } = await start(ada);
    const credential = key.create(publicKey, app.baseUrl);
    const body = { state, credential };
    expect((await ada.client.post('/v1/keys/register/complete', body)).status).toBe(200);
    // Gives ada's key the credential id that eve sends, as if one key had signed both challenges.
    const taken = Buffer.from(credential.id, 'base64url');
    const other = await start(eve);
    const copy = app.newKey();
    const made = copy.create(other.publicKey, app.baseUrl);
    await rows(
      app.dataSource,
      'UPDATE authenticators SET credential_id = $1 WHERE credential_id = $2',
      [Buffer.from(made.id, 'base64url'), taken],
    );
    const answer = await eve.client.post('/v1/keys/register/complete', {
      state: other.state,
      credential: made,
    });
    expect(code(answer)).toEqual([409, 'credential_exists']);
  });

  it('spends its state: 20 completions at once add one key', async () => {
    const email = newEmail();
    const { client } = await app.enrolled(email);
    const { state, publicKey } = (await client.post('/v1/keys/register/start', {})).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        client.post('/v1/keys/register/complete', { state, credential }, { address: newAddress() }),
      ),
    );
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 400)]);
    expect(await keysOf(app, email)).toHaveLength(2);
  });

  it('refuses the state of another session of the same user, and of an enrollment or a login', async () => {
    const { client, other, key } = await withTwoKeys();
    const { state, publicKey } = (await client.post('/v1/keys/register/start', {})).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const elsewhere = await other.post('/v1/keys/register/complete', { state, credential });
    expect(code(elsewhere)).toEqual([400, 'invalid_state']);
    const login = (await client.post('/login/webauthn/start', {})).json.state as string;
    const answer = await client.post('/v1/keys/register/complete', { state: login, credential });
    expect(code(answer)).toEqual([400, 'invalid_state']);
    const used = await client.post('/login/webauthn/complete', {
      state,
      credential: key.get(
        (await client.post('/login/webauthn/start', {})).json.publicKey,
        app.baseUrl,
      ),
    });
    expect(code(used)).toEqual([400, 'invalid_state']);
  });

  it('stops at 20 keys, also for two requests at once', async () => {
    const email = newEmail();
    const { client } = await app.enrolled(email);
    await rows(
      app.dataSource,
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       SELECT gen_random_uuid(), $1, decode(md5(n::text || $2), 'hex'), 'pem', 0, 'packed', true, 'key'
       FROM generate_series(1, 18) n`,
      [await idOf(app, email), email],
    );
    const answers = await Promise.all(
      Array.from({ length: 2 }, () => addKey(app, client, app.newKey())),
    );
    expect(answers.map(code).toSorted()).toEqual([
      [200, undefined],
      [409, 'limit_reached'],
    ]);
    const answer = await client.post('/v1/keys/register/start', {});
    expect(code(answer)).toEqual([409, 'limit_reached']);
    expect(await keysOf(app, email)).toHaveLength(20);
  });

  it('is refused from another origin, in a bootstrap session, and without a session', async () => {
    const email = newEmail();
    const { client } = await app.enrolled(email);
    const headers = { origin: 'https://evil.example' };
    const foreign = await client.post('/v1/keys/register/start', {}, { headers });
    expect(code(foreign)).toEqual([403, 'invalid_origin']);
    const bootstrap = app.client();
    await bootstrap.signIn(email);
    expect(code(await bootstrap.post('/v1/keys/register/start', {}))).toEqual([
      403,
      'hardware_required',
    ]);
    expect((await app.client().post('/v1/keys/register/start', {})).status).toBe(401);
  });

  it('is refused when the user was deactivated, or the session ended, while it waited for the user’s row', async () => {
    for (const [change, refusal] of [
      ['UPDATE users SET active = false WHERE id = $1', [403, 'account_inactive']],
      ['DELETE FROM sessions WHERE user_id = $1', [401, 'unauthenticated']],
    ] as const) {
      const { email, client, spareId } = await withTwoKeys();
      const id = await idOf(app, email);
      const { state, publicKey } = (await client.post('/v1/keys/register/start', {})).json;
      const credential = app.newKey().create(publicKey, app.baseUrl);
      const answers: Promise<Answer>[] = [];
      await app.dataSource.transaction(async (parked) => {
        await parked.query('SELECT id FROM users WHERE id = $1 FOR UPDATE', [id]);
        answers.push(
          client.post('/v1/keys/register/complete', { state, credential }),
          remove(client, spareId),
        );
        await untilWaiting(app.dataSource, 2);
        await parked.query(change, [id]);
      });
      for (const answer of await Promise.all(answers)) expect(code(answer)).toEqual(refusal);
      expect(await keysOf(app, email)).toHaveLength(2);
    }
  });

  it('needs an e-mail address in a domain that the organization owns', async () => {
    const email = newEmail();
    const { client } = await app.enrolled(email);
    await rows(
      app.dataSource,
      `UPDATE organization_domains SET verified_at = NULL WHERE domain = split_part($1, '@', 2)`,
      [email],
    );
    const answer = await addKey(app, client, app.newKey());
    expect(code(answer)).toEqual([403, 'enrollment_refused']);
  });

  it('leads only to our own pages afterwards', async () => {
    const { client } = await app.enrolled(newEmail());
    const target = { redirect_to: 'https://evil.example/' };
    const { state, publicKey } = (await client.post('/v1/keys/register/start', target)).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const answer = await client.post('/v1/keys/register/complete', { state, credential });
    expect(answer.json.redirect_to).toBe(`${app.baseUrl}/`);
  });
});

describe('a token of svc-cli', () => {
  it('adds and removes a key with svc:credentials and its DPoP key', async () => {
    const email = newEmail();
    await app.enrolled(email);
    const cli = await commandLine(email);
    const started = await cli.send('POST', '/v1/keys/register/start', {});
    expect(started.status).toBe(200);
    const { state, publicKey } = started.json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const added = await cli.send('POST', '/v1/keys/register/complete', { state, credential });
    expect(added.status).toBe(200);
    const removed = await cli.send('DELETE', `/v1/keys/${added.json.key.id}`);
    expect([removed.status, removed.json]).toEqual([
      200,
      { sessions_revoked: 0, current_session_revoked: false },
    ]);
  });

  it('without svc:credentials opens none of it', async () => {
    const email = newEmail();
    await app.enrolled(email);
    const cli = await commandLine(email, 'openid svc:applications');
    for (const [method, path] of [
      ['POST', '/v1/keys/register/start'],
      ['DELETE', `/v1/keys/${randomUUID()}`],
    ] as const) {
      expect(code(await cli.send(method, path))).toEqual([403, 'insufficient_scope']);
    }
  });

  it('that was stolen from its file removes no key: as Bearer, or with another DPoP key, it is 401', async () => {
    const { email, spareId } = await withTwoKeys();
    const { token, send } = await commandLine(email);
    const bearer = await remove(app.client(), spareId, {
      origin: '',
      authorization: `Bearer ${token}`,
    });
    const path = `/v1/keys/${spareId}`;
    const answers = [bearer, await send('DELETE', path, undefined, await DpopKey.generate())];
    for (const { status, headers } of answers) {
      expect([status, headers.get('www-authenticate')]).toEqual([
        401,
        expect.stringMatching(/^DPoP error="invalid_(token|dpop_proof)"/),
      ]);
    }
    expect(await keysOf(app, email)).toHaveLength(2);
    expect((await send('DELETE', path)).status).toBe(200);
  });
});

describe('DELETE /v1/keys/{id}', () => {
  it('ends the sessions, tokens and certificates that the key opened, and no others', async () => {
    const { email, client, other, spareId, firstId } = await withTwoKeys();
    const person = { ...(await rowOf(email)), keyId: spareId };
    const device = await oauth.session(person, { clientId: 'svc-cli' });
    const token = await oauth.token(person, { session: device });
    const headers = { authorization: `Bearer ${token}` };
    const serial = await certificate(other);
    const kept = await certificate(client);
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(200);

    const answer = await remove(client, spareId);
    expect([answer.status, answer.json]).toEqual([
      200,
      { sessions_revoked: 2, current_session_revoked: false },
    ]);
    expect([await isIn(other), await isIn(client)]).toEqual([false, true]);
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(401);
    expect(await count(app.dataSource, 'oauth_grants WHERE session_id = $1', [device.id])).toBe(0);
    expect([await isRevoked(serial), await isRevoked(kept)]).toEqual([true, false]);
    expect((await keysOf(app, email)).map(({ id }) => id)).toEqual([firstId]);
    expect(await events(email, 'key_removed')).toEqual([
      expect.objectContaining({
        details: {
          key_id: spareId,
          name: 'Spare',
          aaguid: expect.any(String),
          sessions: 2,
          certificates: 1,
        },
      }),
    ]);
  });

  it('revokes the certificates of sessions that ended before, by a logout', async () => {
    const { client, other, spareId } = await withTwoKeys();
    const serial = await certificate(other);
    await other.post('/logout');
    expect(await isRevoked(serial)).toBe(false);
    expect((await remove(client, spareId)).json.sessions_revoked).toBe(0);
    expect(await isRevoked(serial)).toBe(true);
  });

  it('revokes a valid certificate of which an earlier version did not note the key', async () => {
    const { client, spareId } = await withTwoKeys();
    const serial = await certificate(client);
    await rows(
      app.dataSource,
      'UPDATE ssh_certificates SET authenticator_id = NULL WHERE serial = $1',
      [serial],
    );
    expect((await remove(client, spareId)).status).toBe(200);
    expect(await isRevoked(serial)).toBe(true);
  });

  it('ends the session of the request when it is of that key, and says so', async () => {
    const { client, firstId, key } = await withTwoKeys();
    const answer = await remove(client, firstId.toUpperCase());
    expect([answer.status, answer.json]).toEqual([
      200,
      { sessions_revoked: 1, current_session_revoked: true },
    ]);
    expect(answer.headers.get('set-cookie')).toMatch(/^svc_session=;.*Max-Age=0/);
    expect(await isIn(client)).toBe(false);
    expect(code(await app.client().logIn(key))).toEqual([400, 'assertion_rejected']);
  });

  it('refuses the last key, and changes nothing', async () => {
    const email = newEmail();
    const { client } = await app.enrolled(email);
    const serial = await certificate(client);
    const [only] = await keysOf(app, email);
    expect(code(await remove(client, only?.id ?? ''))).toEqual([409, 'last_key']);
    expect(await isIn(client)).toBe(true);
    expect(await isRevoked(serial)).toBe(false);
    expect(await events(email, 'key_removed')).toEqual([]);
  });

  it('does not find a key of another user, nor an id that is no key', async () => {
    const { client } = await withTwoKeys();
    const eve = await withTwoKeys();
    for (const id of [eve.spareId, randomUUID(), 'nonsense', '%00']) {
      expect(code(await remove(client, id))).toEqual([404, 'not_found']);
    }
    expect(await keysOf(app, eve.email)).toHaveLength(2);
  });

  it('is accepted from the service’s own pages, and not from another origin', async () => {
    const { client, spareId } = await withTwoKeys();
    const answer = await remove(client, spareId, { origin: 'https://evil.example' });
    expect(code(answer)).toEqual([403, 'invalid_origin']);
  });

  it('20 at once for the two last keys leave exactly one', async () => {
    for (const from of ['client', 'other'] as const) {
      const person = await withTwoKeys();
      const ids = [person.firstId, person.spareId];
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => remove(person[from], ids[index % 2] ?? '')),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
      for (const status of statuses) expect([200, 401, 404, 409]).toContain(status);
      expect(await keysOf(app, person.email)).toHaveLength(1);
      expect(await events(person.email, 'key_removed')).toHaveLength(1);
    }
  });

  it('20 at once of one key from two sessions leave exactly one', async () => {
    const person = await withTwoKeys();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        index % 2 === 0
          ? remove(person.client, person.spareId)
          : remove(person.other, person.firstId),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await keysOf(app, person.email)).toHaveLength(1);
  });

  it('leaves no valid certificate that was asked for at the same time', async () => {
    const { email, client, other, spareId } = await withTwoKeys();
    const asked = Array.from({ length: 10 }, () =>
      other.post(
        '/v1/credentials/ssh',
        { public_key: newPublicKeyLine() },
        { address: newAddress() },
      ),
    );
    expect((await remove(client, spareId)).status).toBe(200);
    for (const { status } of await Promise.all(asked)) expect([200, 401, 403]).toContain(status);
    const valid = `ssh_certificates WHERE revoked_at IS NULL AND user_id = $1`;
    expect(await count(app.dataSource, valid, [await idOf(app, email)])).toBe(0);
  });

  it('a login with the key that waits for the removal is refused', async () => {
    const { client, second, spareId } = await withTwoKeys();
    const browser = app.client();
    const { state, publicKey } = (await browser.post('/login/webauthn/start', {})).json;
    const credential = second.get(publicKey, app.baseUrl);
    expect((await remove(client, spareId)).status).toBe(200);
    const answer = await browser.post('/login/webauthn/complete', { state, credential });
    expect(code(answer)).toEqual([400, 'assertion_rejected']);
  });
});

describe('a step-up', () => {
  const challenge = (scheme: string) =>
    new RegExp(
      `^${scheme} error="insufficient_user_authentication", error_description="[^"]+", max_age="60", .*resource_metadata="`,
    );

  it.each(['DELETE', 'POST start', 'POST complete'])(
    'of the last 60 s is demanded of a cookie with the challenge of RFC 9470: %s',
    async (act) => {
      const { email, client, spareId } = await withTwoKeys();
      const { state, publicKey } = (await client.post('/v1/keys/register/start', {})).json;
      const credential = app.newKey().create(publicKey, app.baseUrl);
      const send = () => {
        if (act === 'DELETE') return remove(client, spareId);
        const path = `/v1/keys/register/${act.slice(5)}`;
        const body = act === 'POST start' ? {} : { state, credential };
        return client.post(path, body, { address: newAddress() });
      };
      await touchedAgo(app, email, 61);
      const answer = await send();
      expect(code(answer)).toEqual([401, 'insufficient_user_authentication']);
      expect(answer.headers.get('www-authenticate')).toMatch(challenge('Bearer'));
      expect(await keysOf(app, email)).toHaveLength(2);
      await touchedAgo(app, email, 55);
      // the refusal has not used up the state of the registration
      expect((await send()).status).toBe(200);
    },
  );

  it('is demanded of a token under its own scheme, and a new touch in its session satisfies it', async () => {
    const { email, spareId } = await withTwoKeys();
    const cli = await commandLine(email);
    await touchedAgo(app, email, 61);
    const answer = await cli.send('DELETE', `/v1/keys/${spareId}`);
    expect(code(answer)).toEqual([401, 'insufficient_user_authentication']);
    expect(answer.headers.get('www-authenticate')).toMatch(challenge('DPoP'));
    await touchedAgo(app, email, 0);
    expect((await cli.send('DELETE', `/v1/keys/${spareId}`)).status).toBe(200);
  });

  it('is a login in the session with one of the user’s keys, and the session goes on', async () => {
    const { email, client, key, spareId } = await withTwoKeys();
    await touchedAgo(app, email, 61);
    const cookie = client.cookie('svc_session');
    const { publicKey } = (await client.post('/login/webauthn/start', {})).json;
    expect(publicKey.allowCredentials).toHaveLength(2);
    expect((await client.logIn(key)).status).toBe(200);
    expect(client.cookie('svc_session')).toBe(cookie);
    expect((await remove(client, spareId)).status).toBe(200);
  });

  it('is not needed for the list and for a new name', async () => {
    const { email, client, spareId } = await withTwoKeys();
    await touchedAgo(app, email, 3600);
    expect(await isIn(client)).toBe(true);
    const body = { name: 'Drawer' };
    expect((await client.send('PATCH', `/v1/keys/${spareId}`, { body })).status).toBe(200);
  });
});

describe('PATCH /v1/keys/{id}', () => {
  it('notes the earlier name in the audit log', async () => {
    const { email, client, spareId } = await withTwoKeys();
    const body = { name: 'Drawer' };
    const answer = await client.send('PATCH', `/v1/keys/${spareId}`, { body });
    expect(answer.json).toMatchObject({ id: spareId, name: 'Drawer', current: false });
    expect((await events(email, 'key_renamed')).map(({ details }) => details)).toEqual([
      { key_id: spareId, name: 'Drawer', earlier_name: 'Spare' },
    ]);
  });

  it('changes nothing if its body comes after the end of the session', async () => {
    const { email, client, spareId } = await withTwoKeys();
    const headers = {
      cookie: `svc_session=${client.cookie('svc_session')}`,
      origin: app.baseUrl,
      'content-type': 'application/json',
    };
    const line = `PATCH /v1/keys/${spareId}`;
    const send = await withLateBody(app.baseUrl, line, headers, { name: 'Drawer' });
    expect((await client.post('/logout')).status).toBe(303);
    expect((await send()).status).toBe(401);
    expect(await events(email, 'key_renamed')).toEqual([]);
  });

  it.each([
    '',
    '   ',
    'x'.repeat(65),
    'two\nlines',
    'a\u0000b',
    'safe\u202egpj',
    '\ud800',
    7,
    null,
  ])('refuses the name %j', async (name) => {
    const { client, spareId } = await withTwoKeys();
    const answer = await client.send('PATCH', `/v1/keys/${spareId}`, { body: { name } });
    expect(answer.status).toBe(400);
    expect((await client.get('/v1/keys')).json.keys[1].name).toBe('Spare');
  });
});
