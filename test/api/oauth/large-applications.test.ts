import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  countOwnApplications,
  listOwnApplications,
} from '../../../src/domain/account/own-applications.repository.js';
import { readDetails } from '../../../src/domain/admin/members/member-details.repository.js';
import { ClientsRepository } from '../../../src/domain/oauth/clients/clients.repository.js';
import { countRows } from '../../../src/domain/oauth/clients/ended-clients.repository.js';
import { EndedClients } from '../../../src/domain/oauth/clients/ended-clients.service.js';
import { BatchedQueries } from '../../../src/domain/oauth/grants/batched-queries.service.js';
import { SessionsRepository } from '../../../src/domain/sessions/sessions.repository.js';
import { SelfRegistrations } from '../../../src/features/oidc/storage/self-registrations.service.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { clockWithoutPolls } from '../../support/clock-without-polls.js';
import { deprovision } from '../../support/deprovisioning.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { CALLBACK, authorize, newPkce, parameterOf, postForm } from '../../support/oauth-flow.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { count, rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';

const API = '/api/v1/applications';
const ORIGIN = { requestId: 'request-1', ip: '192.0.2.7', userAgent: 'test' };

/** The grants of the application, each with a token. */
const GRANTS = atScale({ small: 1_500, full: 300_000 });
const SOME = atScale({ small: 1_500, full: 30_000 });
const FEW = 10;

/** More rows than one statement deletes. */
const MORE = 20_001;

/** The most grants that one statement of this test inserts. */
const PART = 10_000;

/** The time limit of a test, in milliseconds. */
const LIMIT = atScale({ small: 60_000, full: 600_000 });

interface Registered {
  readonly client_id: string;
  readonly client_secret: string;
}

describe('the end of an application with more grants than one statement deletes', () => {
  let app: TestApp;
  let oauth: OauthRows;
  let ada: EnrolledUser;
  let bob: Client;
  let web: Registered;
  let token: string;

  beforeAll(async () => {
    app = await startTestApp({ clock: clockWithoutPolls });
    oauth = new OauthRows(app.dataSource);
    ada = await app.enrolled('ada@large.example');
    ({ client: bob } = await app.enrolled('bob@large.example'));
  });
  afterAll(() => app.close());

  beforeEach(async () => {
    await ada.client.logIn(ada.key, { address: newAddress() }); // a change needs a new touch
    const body = { name: 'Orders', type: 'web', redirect_uris: [CALLBACK] };
    const answer = await ada.client.send('POST', API, { body, address: newAddress() });
    web = answer.json as Registered;
    token = await signedIn();
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const newCode = async () => {
    const { verifier, challenge } = newPkce();
    const url = await authorize(bob, {
      client_id: web.client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const code = parameterOf(url, 'code');
    const grantType = 'authorization_code';
    return { grant_type: grantType, redirect_uri: CALLBACK, code, code_verifier: verifier };
  };
  const redeem = (form: Record<string, string>) => {
    const basic = Buffer.from(`${web.client_id}:${web.client_secret}`).toString('base64');
    return postForm(app, '/oauth/token', form, { authorization: `Basic ${basic}` });
  };
  const signedIn = async () => (await redeem(await newCode())).json.access_token as string;
  const userinfo = async (of = token) => {
    const headers = { authorization: `Bearer ${of}` };
    return (await app.client().get('/oauth/userinfo', { headers })).status;
  };
  const remove = (id: string) =>
    ada.client.send('DELETE', `${API}/${id}`, { address: newAddress() });
  const worker = () => app.nest.get(EndedClients, { strict: false });
  const left = async (id: string) => [
    await count(app.dataSource, 'oauth_grants WHERE client_id = $1', [id]),
    await count(app.dataSource, 'oauth_artifacts WHERE client_id = $1', [id]),
    await count(app.dataSource, 'oauth_clients WHERE id = $1', [id]),
    await count(app.dataSource, 'oauth_ending_clients'),
  ];

  /**
   * Copies the grant of the application to ten people, with a token for each grant. If the number
   * is smaller than the one from which an application is large, the application counts as large all
   * the same.
   */
  async function fill(grants: number): Promise<void> {
    if (grants <= PART) {
      const clients = app.nest.get(ClientsRepository, { strict: false });
      vi.spyOn(clients, 'countRows').mockResolvedValue(MORE);
    }
    const people = await Promise.all(Array.from({ length: 10 }, () => oauth.user()));
    const sessions = await Promise.all(people.map((person) => oauth.session(person)));
    for (let from = 0; from < grants; from += PART) {
      await rows(
        app.dataSource,
        `WITH made AS (
           INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
           SELECT sha256(convert_to(g.client_id || n, 'UTF8')), g.client_id, ($4::uuid[])[n % 10 + 1],
                  ($5::uuid[])[n % 10 + 1], g.payload, g.expires_at
           FROM (SELECT * FROM oauth_grants WHERE client_id = $1 LIMIT 1) g, generate_series($2::int + 1, $3::int) n
           RETURNING id, client_id, user_id, expires_at)
         INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, expires_at)
         SELECT 'AccessToken', m.id, '{}', m.id, m.client_id, m.user_id, m.expires_at FROM made m`,
        [
          web.client_id,
          from,
          Math.min(from + PART, grants),
          people.map(({ id }) => id),
          sessions.map(({ id }) => id),
        ],
      );
    }
  }

  it('is removed at once by its manager, and its rows in batches', { timeout: LIMIT }, async () => {
    const [form, id] = [await newCode(), web.client_id];
    await fill(GRANTS);
    expect(await userinfo()).toBe(200);
    const removed = await remove(id);
    expect([removed.status, removed.text]).toEqual([204, '']);
    expect(await userinfo()).toBe(401);
    expect((await redeem(form)).json.error).toBe('invalid_client');
    expect((await remove(id)).status).toBe(404);
    const listed = await ada.client.get(API, { address: newAddress() });
    expect(listed.text).not.toContain(id);
    const own = await bob.get('/v1/account/applications', { address: newAddress() });
    expect(own.text).not.toContain(id);
    expect(await left(id)).toEqual([expect.any(Number), expect.any(Number), 1, 1]);
    // the next start, or another replica, goes on with the rows
    await worker().drain();
    expect(await left(id)).toEqual([0, 0, 0, 0]);
  });

  it('gets no grant after its removal, and no client registers under its id', async () => {
    await fill(FEW);
    const person = await oauth.user();
    const session = await oauth.session(person);
    await remove(web.client_id);
    const grant = {
      id: randomBytes(32),
      clientId: web.client_id,
      userId: person.id,
      sessionId: session.id,
      payload: {},
      expiresIn: 60,
    };
    const queries = app.nest.get(BatchedQueries, { strict: false });
    expect(await queries.writeGrant(grant)).toEqual({ denial: 'gone' });
    const clients = app.nest.get(ClientsRepository, { strict: false });
    expect(await clients.findLive(app.dataSource.manager, [web.client_id])).toEqual([undefined]);
    expect(await clients.remove(app.dataSource.manager, web.client_id)).toBe(false);
    await worker().drain();
  });

  it('takes the token of a token exchange along', async () => {
    await fill(FEW);
    const reader = await ada.client.send('POST', API, {
      body: { name: 'Reader', type: 'web', redirect_uris: [CALLBACK] },
      address: newAddress(),
    });
    const { client_id: id, client_secret: secret } = reader.json as Registered;
    const person = await oauth.user();
    const session = await oauth.session(person);
    await oauth.token(person, { clientId: web.client_id, session });
    const exchanged = await oauth.token(person, { clientId: id, session });
    await rows(
      app.dataSource,
      `UPDATE oauth_grants c SET parent_id = p.id FROM oauth_grants p
       WHERE c.client_id = $1 AND p.client_id = $2 AND p.user_id = c.user_id`,
      [id, web.client_id],
    );
    const basic = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
    const isActive = async () => {
      const form = { token: exchanged };
      const state = await postForm(app, '/oauth/introspect', form, { authorization: basic });
      return state.json.active;
    };
    expect(await isActive()).toBe(true);
    await remove(web.client_id);
    expect(await isActive()).toBe(false);
    await worker().drain();
    expect(await count(app.dataSource, 'oauth_grants WHERE client_id = $1', [id])).toBe(0);
  });

  it('is large if the grants below its own are many', async () => {
    const [person, id] = [await oauth.user(), web.client_id];
    const reader = await oauth.application(person);
    await rows(
      app.dataSource,
      `INSERT INTO oauth_grants (id, parent_id, client_id, user_id, session_id, payload, expires_at)
       SELECT sha256(convert_to($1 || n, 'UTF8')), g.id, $1, g.user_id, g.session_id, '{}', g.expires_at
       FROM oauth_grants g, generate_series(1, 20) n WHERE g.client_id = $2`,
      [reader, id],
    );
    const { manager } = app.dataSource;
    expect(await countRows(manager, reader, 1_000)).toBe(20);
    expect(await countRows(manager, id, 1_000)).toBeGreaterThan(20);
    expect(await countRows(manager, id, 10)).toBeGreaterThan(10);
  });

  it('that registered itself is removed at once by its own request', async () => {
    await fill(FEW);
    const body = { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' };
    const { json } = await app.client().post('/oauth/register', body, { address: newAddress() });
    const { client_id: id, registration_access_token: own } = json as Record<string, string>;
    const person = await oauth.user();
    const stolen = await oauth.token(person, { clientId: id ?? '' });
    expect(await userinfo(stolen)).not.toBe(401);
    const headers = { authorization: `Bearer ${own}`, origin: '' };
    const path = `/oauth/register/${id}`;
    const removal = () => app.client().send('DELETE', path, { headers, address: newAddress() });
    expect((await removal()).status).toBe(204);
    expect([await userinfo(stolen), (await removal()).status]).toEqual([401, 401]);
    await worker().drain();
    expect(await left(id ?? '')).toEqual([0, 0, 0, 0]);
    expect(await count(app.dataSource, 'sessions WHERE client_id = $1', [id])).toBe(0);
  });

  it('that registered itself gets no new secret after its removal', async () => {
    await fill(FEW);
    const body = { redirect_uris: [CALLBACK] };
    const { json } = await app.client().post('/oauth/register', body, { address: newAddress() });
    const { client_id: id = '', registration_access_token: own = '' } = json as Record<
      string,
      string
    >;
    const registrations = app.nest.get(SelfRegistrations, { strict: false });
    await registrations.remove(id, ORIGIN);
    const changed = { id, metadata: body, secret: 'a'.repeat(43), origin: ORIGIN };
    await expect(registrations.update(changed, own)).rejects.toThrow('invalid_token');
    expect(await count(app.dataSource, 'oauth_client_secrets WHERE client_id = $1', [id])).toBe(0);
    await worker().drain();
    expect(await left(id)).toEqual([0, 0, 0, 0]);
  });

  it('is removed with its owner', { timeout: LIMIT }, async () => {
    await fill(SOME);
    const owner = await oauth.user();
    await app.dataSource.query(
      'UPDATE oauth_clients SET owner_id = $1, org_id = $2 WHERE id = $3',
      [owner.id, owner.orgId, web.client_id],
    );
    await app.dataSource.transaction((tx) =>
      deprovision(app).remove(tx, {
        userId: owner.id,
        reason: 'a test',
        revokedBy: 'scim',
        audit: { type: 'scim_operation', actorId: null, origin: ORIGIN, details: {} },
      }),
    );
    expect(await userinfo()).toBe(401);
    await worker().drain();
    expect(await left(web.client_id)).toEqual([0, 0, 0, 0]);
  });

  it('loses its tokens at once, and keeps later sign-ins', { timeout: LIMIT }, async () => {
    const [form, id] = [await newCode(), web.client_id];
    await fill(GRANTS);
    const path = `${API}/${id}/revoke-tokens`;
    const revoked = await ada.client.send('POST', path, { address: newAddress(), body: {} });
    expect([revoked.status, revoked.json]).toEqual([200, { revoked: GRANTS + 1 }]);
    expect(await userinfo()).toBe(401);
    expect((await redeem(form)).json.error).toBe('invalid_grant');
    const later = await signedIn();
    expect(await userinfo(later)).toBe(200);
    await worker().drain();
    expect(await left(id)).toEqual([1, expect.any(Number), 1, 0]);
    expect([await userinfo(), await userinfo(later)]).toEqual([401, 200]);
  });

  it('loses a token from before the clock of the database went back', async () => {
    await fill(FEW);
    await rows(
      app.dataSource,
      `UPDATE oauth_artifacts SET created_at = now() + interval '1 minute' WHERE client_id = $1`,
      [web.client_id],
    );
    const clients = app.nest.get(ClientsRepository, { strict: false });
    const endedBefore = async () => {
      await clients.endTokens(app.dataSource.manager, web.client_id);
      const sql = 'SELECT ended_before::text AS at FROM oauth_clients WHERE id = $1';
      return (await rows<{ at: string }>(app.dataSource, sql, [web.client_id]))[0]?.at;
    };
    const first = await endedBefore();
    expect(await userinfo()).toBe(401);
    await rows(app.dataSource, 'DELETE FROM oauth_artifacts WHERE client_id = $1', [web.client_id]);
    expect(await endedBefore()).toBe(first);
    await worker().drain();
  });

  it('is neither listed nor counted after the end of its tokens', async () => {
    const person = await oauth.user();
    const session = await oauth.session(person);
    await oauth.token(person, { clientId: web.client_id, session });
    await fill(FEW);
    const clients = app.nest.get(ClientsRepository, { strict: false });
    const { manager } = app.dataSource;
    const seen = async () => [
      (await listOwnApplications(manager, person.id)).map(({ id }) => id),
      await countOwnApplications(manager, person.id),
      (await readDetails(manager, person.id)).applications.length,
      (await clients.countAccess(manager, web.client_id)).tokens > 0,
    ];
    expect(await seen()).toEqual([[web.client_id], 1, 1, true]);
    await clients.endTokens(manager, web.client_id);
    expect(await seen()).toEqual([[], 0, 0, false]);
    expect(await clients.endTokens(manager, web.client_id)).toBe(0);
    await worker().drain();
  });

  it('is not counted after its removal, nor is a session that it opened listed', async () => {
    await fill(FEW);
    const person = await oauth.user();
    await oauth.token(person, { clientId: web.client_id });
    await oauth.session(person);
    const { manager } = app.dataSource;
    const sessions = app.nest.get(SessionsRepository, { strict: false });
    const seen = async () => [
      await countOwnApplications(manager, person.id),
      (await sessions.listOwn(manager, person.id)).length,
      (await readDetails(manager, person.id)).sessions.length,
    ];
    expect(await seen()).toEqual([1, 2, 2]);
    await remove(web.client_id);
    expect(await seen()).toEqual([0, 1, 1]);
    await worker().drain();
  });

  it('is removed with its owner, together with others that are too large together', async () => {
    const owner = await oauth.user();
    const ids = await Promise.all(Array.from({ length: 3 }, () => oauth.application(owner)));
    const clients = app.nest.get(ClientsRepository, { strict: false });
    vi.spyOn(clients, 'countRows').mockResolvedValue(9_000);
    const kindsAfter = await app.dataSource.transaction(async (tx) => {
      await clients.detach(tx, [{ id: owner.id }]);
      const sql = 'SELECT kind FROM oauth_clients WHERE id = ANY ($1) ORDER BY id';
      return tx.query<{ kind: string }[]>(sql, [ids]);
    });
    expect(kindsAfter.map(({ kind }) => kind)).toEqual(['application', 'application', 'removed']);
    await worker().drain();
  });

  it('does not wait for another application whose rows cannot be deleted', async () => {
    await fill(FEW);
    const owner = await oauth.user();
    const stuck = `0-${await oauth.application(owner)}`;
    await rows(
      app.dataSource,
      `INSERT INTO oauth_clients (id, kind, metadata) VALUES ($1, 'dynamic', '{}')`,
      [stuck],
    );
    await oauth.token(owner, { clientId: stuck });
    const clients = app.nest.get(ClientsRepository, { strict: false });
    await clients.remove(app.dataSource.manager, stuck);
    await remove(web.client_id);
    await app.dataSource.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stuck'; END $$`,
    );
    await app.dataSource.query(
      `CREATE TRIGGER refuse BEFORE DELETE ON oauth_grants FOR EACH ROW
       WHEN (OLD.client_id = '${stuck}') EXECUTE FUNCTION refuse()`,
    );
    await expect(worker().drain()).rejects.toThrow('stuck');
    expect(await left(web.client_id)).toEqual([0, 0, 0, 1]);
    await app.dataSource.query('DROP TRIGGER refuse ON oauth_grants');
    await worker().drain();
    expect(await left(stuck)).toEqual([0, 0, 0, 0]);
  });

  it('gives no token to a request that waits for the end of all tokens', async () => {
    await fill(FEW);
    const person = await oauth.user();
    await oauth.token(person, { clientId: web.client_id });
    const [grant] = await rows<{ id: Buffer }>(
      app.dataSource,
      'SELECT id FROM oauth_grants WHERE user_id = $1',
      [person.id],
    );
    const runner = app.dataSource.createQueryRunner();
    await runner.startTransaction();
    const clients = app.nest.get(ClientsRepository, { strict: false });
    await clients.endTokens(runner.manager, web.client_id);
    const asked = {
      clientId: web.client_id,
      userId: person.id,
      payload: {},
      expiresIn: 60,
      model: 'AccessToken',
      id: randomBytes(32),
      grantId: grant?.id ?? null,
      userCode: null,
    };
    const audit = { auditId: randomUUID(), origin: ORIGIN, details: {} };
    const issued = app.nest.get(BatchedQueries, { strict: false }).issueToUser(asked, audit);
    await untilWaiting(app.dataSource, 1);
    await runner.commitTransaction();
    await runner.release();
    expect(await issued).toEqual({ denial: 'gone' });
    await worker().drain();
  });
});
