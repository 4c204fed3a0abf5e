import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { EntityManager } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/domain/access/issuance/issuance.repository.js';
import { upsertArtifacts } from '../../src/domain/oauth/grants/artifacts.repository.js';
import { ClientsRepository } from '../../src/domain/oauth/clients/clients.repository.js';
import type { Artifact } from '../../src/domain/oauth/grants/artifact.js';
import { USER_TOKEN, type TokenAudit } from '../../src/domain/oauth/grants/tokens.repository.js';
import { BatchedQueries } from '../../src/domain/oauth/grants/batched-queries.service.js';
import { destroyGrant, writeGrant } from '../../src/domain/oauth/grants/grants.repository.js';
import type { AccountAudit } from '../../src/domain/directory/account.js';
import { deprovision, type Deprovision } from '../support/deprovisioning.js';
import { Applications } from '../../src/features/oidc/applications/applications.service.js';
import { withTransactionRetry } from '../../src/platform/database/statements/transaction-retry.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { OauthRows, type UserRow } from '../support/oauth-rows.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { count, rows } from '../support/rows.js';
import { statementText } from '../support/statement-text.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const ORIGIN = { requestId: 'request-1', ip: '192.0.2.7', userAgent: 'test' };
const ADMIN = randomUUID();

describe('de-provisioning', () => {
  let app: TestApp;
  let service: Deprovision;
  let oauth: OauthRows;
  let person: UserRow;

  beforeAll(async () => {
    app = await startTestApp();
    service = deprovision(app);
    oauth = new OauthRows(app.dataSource);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    person = await oauth.user();
  });

  const audit = (type: AccountAudit['type']): AccountAudit => ({
    type,
    actorId: ADMIN,
    origin: ORIGIN,
    details: { because: 'a test' },
  });
  const removal = (userId = person.id) => ({
    userId,
    reason: 'removed by an admin',
    revokedBy: ADMIN,
    audit: audit('admin_remove_user'),
  });
  const deactivation = (userId = person.id) => ({
    userId,
    reason: 'user deleted by SCIM',
    revokedBy: 'scim',
    audit: { ...audit('scim_operation'), actorId: null },
  });
  const remove = (userId?: string) =>
    app.dataSource.transaction((tx) => service.remove(tx, removal(userId)));
  const deactivate = (userId?: string) =>
    app.dataSource.transaction((tx) => service.deactivate(tx, deactivation(userId)));

  it.each([
    ['remove', remove],
    ['deactivate', deactivate],
  ])('%s and the insert of a code wait for each other without a deadlock', async (_, end) => {
    const clientId = await oauth.client();
    await oauth.token(person, { clientId });
    const [grant] = await rows<{ id: Buffer }>(
      app.dataSource,
      'SELECT id FROM oauth_grants WHERE user_id = $1',
      [person.id],
    );
    // A third transaction locks the row of the user until both wait. Then the end of access runs
    // first, and the insert of the code after it.
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [person.id]);
    const ended = end();
    await untilWaiting(app.dataSource, 1);
    const code = upsertArtifacts(
      app.dataSource.manager,
      [
        {
          model: 'AuthorizationCode',
          id: randomBytes(32),
          payload: {},
          grantId: grant?.id ?? null,
          clientId,
          userId: person.id,
          userCode: null,
          expiresIn: 60,
        },
      ],
      'wait',
    ).catch((error: Error) => error.message);
    await untilWaiting(app.dataSource, 2);
    await holder.rollbackTransaction();
    await holder.release();
    await ended;
    // the insert fails because the grant is gone, and not as the victim of a deadlock
    expect(await code).toMatch('violates foreign key constraint');
    expect(await left(person.id)).toMatchObject({ oauth_grants: 0, oauth_artifacts: 0 });
  });

  it.each([
    ['remove', remove],
    ['deactivate', deactivate],
  ])('%s and the revocation of every token of an application do not deadlock', async (_, end) => {
    const clientId = await oauth.client();
    const bystander = await oauth.user();
    for (const whose of [bystander, person]) await oauth.token(whose, { clientId });
    // This lock stops the revocation of all tokens at its first token, when it has locked both
    // grants.
    const holder = await holding('oauth_artifacts WHERE user_id = $1', bystander.id);
    const clients = app.nest.get(ClientsRepository, { strict: false });
    const revoked = app.dataSource.transaction((tx) => clients.endTokens(tx, clientId));
    await untilWaiting(app.dataSource, 1);
    const ended = end();
    await untilWaiting(app.dataSource, 2);
    await holder.release();
    expect(await Promise.all([revoked, ended])).toEqual([
      2,
      { sessions: 1, grants: 1, tokens: 1, certificates: 0 },
    ]);
  });

  it.each([
    ['remove', remove],
    ['deactivate', deactivate],
  ])('%s and the revocation of a code do not deadlock', async (_, end) => {
    await oauth.token(person);
    const [grant] = await rows<{ id: Buffer }>(
      app.dataSource,
      'SELECT id FROM oauth_grants WHERE user_id = $1',
      [person.id],
    );
    // A third transaction locks the grant until both wait. Then the revocation of the grant runs
    // first, and the end of the user's access after it.
    const holder = await holding('oauth_grants WHERE user_id = $1', person.id);
    const taken = destroyGrant(app.dataSource.manager, grant?.id ?? Buffer.alloc(0));
    await untilWaiting(app.dataSource, 1);
    const ended = end();
    await untilWaiting(app.dataSource, 2);
    await holder.release();
    expect(await Promise.all([taken, ended])).toEqual([
      undefined,
      { sessions: 1, grants: 1, tokens: 1, certificates: 0 },
    ]);
  });

  it.each(['grant', 'token'] as const)(
    'a %s on a session of a client and the removal of the client do not deadlock',
    async (what) => {
      const clientId = await oauth.client();
      const other = await oauth.session(await oauth.user(), { clientId });
      const session = await oauth.session(person, { clientId });
      await oauth.token(person, { clientId, session });
      const [grant] = await rows<{ id: Buffer }>(
        app.dataSource,
        'SELECT id FROM oauth_grants WHERE user_id = $1',
        [person.id],
      );
      // This lock stops the removal of the client at the first of its sessions, when it has locked
      // the client.
      const holder = await holding('sessions WHERE id = $1', other.id);
      const clients = app.nest.get(ClientsRepository, { strict: false });
      const removed = clients.remove(app.dataSource.manager, clientId);
      await untilWaiting(app.dataSource, 1);
      const about = { clientId, userId: person.id, payload: {}, expiresIn: 60 };
      const statements = app.nest.get(BatchedQueries, { strict: false });
      const written =
        what === 'grant'
          ? statements.writeGrant({ ...about, id: randomBytes(32), sessionId: session.id })
          : statements.issueToUser(
              {
                ...about,
                model: 'AccessToken',
                id: randomBytes(32),
                grantId: grant?.id ?? null,
                userCode: null,
              },
              { auditId: randomUUID(), origin: ORIGIN, details: {} },
            );
      await untilWaiting(app.dataSource, 2);
      await holder.release();
      expect(await Promise.all([removed, written])).toEqual([true, { denial: 'gone' }]);
    },
  );

  it('the removal of an owner and the revocation of tokens of an application both get a response, in either order', async () => {
    const clientId = await oauth.application(person);
    const bystander = await oauth.user();
    for (const whose of [bystander, person]) await oauth.token(whose, { clientId });
    const holder = await holding('oauth_grants WHERE user_id = $1', bystander.id);
    const admin = await oauth.user({ admin: true });
    await app.dataSource.query(
      "UPDATE users SET org_id = $1, email = 'boss@' || split_part($2, '@', 2) WHERE id = $3",
      [person.orgId, person.email, admin.id],
    );
    const manager = {
      userId: admin.id,
      orgId: person.orgId,
      isAdmin: true,
      isOrgAdmin: true,
      sessionId: (await oauth.session(admin)).id,
    };
    const revoked = app.nest
      .get(Applications, { strict: false })
      .revokeTokens(manager, clientId, ORIGIN)
      .catch((error: { code: string }) => error.code);
    // by now the revocation has locked the application, and waits for the first grant
    await untilWaiting(app.dataSource, 1);
    // The removal locks the second grant, and waits for the application.
    const ended = withTransactionRetry(app.dataSource, (tx) => service.remove(tx, removal()));
    await untilWaiting(app.dataSource, 2);
    // The removal passes its check for deadlocks (after 1 s), so that PostgreSQL usually ends the
    // revocation, which begins to wait later.
    await delay(1500);
    await holder.release();
    expect([2, 'not_found']).toContain(await revoked);
    expect(await ended).toEqual({ sessions: 1, grants: 1, tokens: 1, certificates: 0 });
  });

  /** Locks rows in a transaction of its own, until `release` is called. */
  async function holding(fromWhere: string, parameter: string) {
    const runner = app.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query(`SELECT FROM ${fromWhere} FOR UPDATE`, [parameter]);
    return {
      async release() {
        await runner.rollbackTransaction();
        await runner.release();
      },
    };
  }

  /** Returns for each table how many rows belong to a user. */
  async function left(userId: string): Promise<Record<string, number>> {
    const byTable: Record<string, number> = {};
    for (const table of ['sessions', 'oauth_grants', 'oauth_artifacts', 'authenticators']) {
      byTable[table] = await count(app.dataSource, `${table} WHERE user_id = $1`, [userId]);
    }
    return byTable;
  }

  const certificates = (userId: string) =>
    rows<{ serial: string; revoke_reason: string | null; revoked_by: string | null }>(
      app.dataSource,
      'SELECT serial, revoke_reason, revoked_by FROM ssh_certificates WHERE user_id = $1',
      [userId],
    );

  const askForCertificate = (token: string) =>
    app
      .client()
      .post(
        '/v1/credentials/ssh',
        { public_key: newPublicKeyLine() },
        { headers: { authorization: `Bearer ${token}`, origin: '' }, address: newAddress() },
      );

  /**
   * Inserts for a user sessions of several levels, grants, codes, tokens, artifacts without a
   * grant, and a certificate. Returns the access token of svc-cli.
   */
  async function fill(of: UserRow): Promise<string> {
    const browser = await oauth.session(of);
    await oauth.session(of, { level: 'bootstrap' });
    const client = await oauth.client();
    for (const model of ['AccessToken', 'AuthorizationCode', 'DeviceCode']) {
      await oauth.token(of, { clientId: client, session: browser, model });
    }
    await oauth.token(of, { clientId: client, level: 'synthetic' });
    for (const model of ['Session', 'Interaction']) {
      await oauth.artifact(model, randomUUID(), { userId: of.id });
    }
    const token = await oauth.token(of);
    const issued = await askForCertificate(token);
    expect(issued.status).toBe(200);
    return token;
  }

  it('a removal ends every session, grant, code and token, revokes the certificates, and deletes the keys', async () => {
    const token = await fill(person);
    const bystander = await oauth.user();
    const other = await fill(bystander);
    expect(await left(person.id)).toEqual({
      sessions: 4,
      oauth_grants: 5,
      oauth_artifacts: 7,
      authenticators: 1,
    });

    expect(await remove()).toEqual({ sessions: 4, grants: 5, tokens: 3, certificates: 1 });

    expect(await left(person.id)).toEqual({
      sessions: 0,
      oauth_grants: 0,
      oauth_artifacts: 0,
      authenticators: 0,
    });
    expect(await count(app.dataSource, 'users WHERE id = $1', [person.id])).toBe(0);
    expect(await certificates(person.id)).toEqual([
      expect.objectContaining({ revoke_reason: 'removed by an admin', revoked_by: ADMIN }),
    ]);
    expect((await askForCertificate(token)).status).toBe(401);
    expect((await askForCertificate(other)).status).toBe(200);
    expect((await left(bystander.id))['oauth_artifacts']).toBe(7);
  });

  it('a removal deletes the applications that the user registered, and their tokens', async () => {
    const client = await oauth.application(person);
    await oauth.artifact('ClientCredentials', randomUUID(), { clientId: client });
    await oauth.token(await oauth.user(), { clientId: client });
    await remove();
    for (const table of ['oauth_clients WHERE id', 'oauth_artifacts WHERE client_id']) {
      expect(await count(app.dataSource, `${table} = $1`, [client])).toBe(0);
    }
  });

  it('a deactivation ends the same access, and keeps the user, the keys, applications and memberships', async () => {
    const token = await fill(person);
    const client = await oauth.application(person);
    expect(await deactivate()).toEqual({ sessions: 4, grants: 5, tokens: 3, certificates: 1 });
    expect(await left(person.id)).toEqual({
      sessions: 0,
      oauth_grants: 0,
      oauth_artifacts: 0,
      authenticators: 1,
    });
    const [user] = await rows(app.dataSource, 'SELECT active, org_id FROM users WHERE id = $1', [
      person.id,
    ]);
    expect(user).toEqual({ active: false, org_id: person.orgId });
    expect(await count(app.dataSource, 'oauth_clients WHERE id = $1', [client])).toBe(1);
    expect(await certificates(person.id)).toEqual([
      expect.objectContaining({ revoke_reason: 'user deleted by SCIM', revoked_by: 'scim' }),
    ]);
    expect((await askForCertificate(token)).status).toBe(401);
  });

  it('an activation lets the user log in again, and restores no earlier access', async () => {
    await fill(person);
    await deactivate();
    await app.dataSource.transaction((tx) =>
      service.activate(tx, { userId: person.id, audit: audit('admin_activate') }),
    );
    expect(await left(person.id)).toMatchObject({ sessions: 0, oauth_artifacts: 0 });
    expect((await askForCertificate((await oauth.session(person)).token)).status).toBe(200);
  });

  it('each is audited under its caller, with counts of the ended access', async () => {
    await fill(person);
    await deactivate();
    await app.dataSource.transaction((tx) =>
      service.activate(tx, { userId: person.id, audit: audit('admin_activate') }),
    );
    await remove();
    const events = await rows(
      app.dataSource,
      `SELECT type, class, actor_id, org_id, host(ip) AS ip, details FROM audit_events
       WHERE subject_id = $1 AND class = 'admin' ORDER BY created_at`,
      [person.id],
    );
    const about = { class: 'admin', org_id: person.orgId, ip: '192.0.2.7' };
    const details = { because: 'a test' };
    expect(events).toEqual([
      {
        ...about,
        type: 'scim_operation',
        actor_id: null,
        details: { ...details, sessions: 4, grants: 5, tokens: 3, certificates: 1 },
      },
      { ...about, type: 'admin_activate', actor_id: ADMIN, details },
      {
        ...about,
        type: 'admin_remove_user',
        actor_id: ADMIN,
        details: { ...details, sessions: 0, certificates: 0 },
      },
    ]);
  });

  it('of a removed user is not_found', async () => {
    await remove();
    for (const again of [remove, deactivate]) {
      await expect(again()).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  it.each([
    ['remove', [0, 1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13]],
    ['deactivate', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13]],
  ] as const)(
    '%s runs its steps in the specified order, the user row first',
    async (act, steps) => {
      await fill(person);
      const statements: string[] = [];
      await app.dataSource.transaction(async (tx) => {
        await recorded(tx, statements, () => service[act](tx, removal()));
      });
      expect(statements.map((text) => STEPS.findIndex((step) => step.test(text)))).toEqual(steps);
    },
  );

  it.each(['remove', 'deactivate'] as const)(
    'a fault in the last step of %s rolls back everything',
    async (act) => {
      const token = await fill(person);
      const before = await left(person.id);
      // PostgreSQL refuses the audit row with this `ip`
      const origin = { ...ORIGIN, ip: 'no address' };
      const faulty = { ...removal(), audit: { ...audit('admin_remove_user'), origin } };
      await expect(
        app.dataSource.transaction((tx) => service[act](tx, faulty)),
      ).rejects.toMatchObject({ code: '22P02' });
      expect(await left(person.id)).toEqual(before);
      expect(await certificates(person.id)).toEqual([
        expect.objectContaining({ revoked_by: null }),
      ]);
      expect((await askForCertificate(token)).status).toBe(200);
    },
  );

  it('is rolled back with the transaction of the caller', async () => {
    await fill(person);
    const before = await left(person.id);
    const given = app.dataSource.transaction(async (tx) => {
      await service.remove(tx, removal());
      throw new Error('the caller thinks better of it');
    });
    await expect(given).rejects.toThrow('thinks better');
    expect(await left(person.id)).toEqual(before);
  });

  it.each([
    ['deleting', remove],
    ['deactivating', deactivate],
  ])(
    '%s of a user while 12 clients request certificates leaves no valid certificate',
    async (_name, act) => {
      const token = await fill(person);
      const issued: string[] = [];
      const underWay = Promise.withResolvers<void>();
      const late: number[] = [];
      let isAnswered = false;
      const load = Array.from({ length: 12 }, async () => {
        for (;;) {
          const wasAnswered = isAnswered;
          const answer = await askForCertificate(token);
          if (wasAnswered) late.push(answer.status);
          if (answer.status !== 200) {
            if (isAnswered && wasAnswered) return answer.status;
            continue;
          }
          issued.push(answer.json.serial);
          if (issued.length === 24) underWay.resolve();
        }
      });
      const refusals = Promise.all(load);
      await underWay.promise;
      await act(person.id);
      isAnswered = true;
      expect(await refusals).toEqual(Array(12).fill(401));
      expect(late).toEqual(Array(late.length).fill(401));

      const kept = await certificates(person.id);
      expect(kept.filter(({ revoked_by }) => revoked_by === null)).toEqual([]);
      const serials = new Set(kept.map(({ serial }) => serial));
      expect(issued.filter((serial) => !serials.has(serial))).toEqual([]);
      expect(await left(person.id)).toMatchObject({ sessions: 0, oauth_artifacts: 0 });
    },
  );

  it.each([
    ['deleting', 'one by one', remove],
    ['deactivating', 'one by one', deactivate],
    ['deleting', 'together', remove],
    ['deactivating', 'together', deactivate],
  ])(
    '%s of a user while 12 clients receive tokens %s leaves no grant and no token',
    async (_name, how, act) => {
      const shared = app.nest.get(BatchedQueries, { strict: false });
      const { manager } = app.dataSource;
      const { id: sessionId } = await oauth.session(person);
      const about = { clientId: 'svc-cli', userId: person.id, payload: {}, expiresIn: 600 };
      const underWay = Promise.withResolvers<void>();
      let issued = 0;
      const isIssued = async (outcome: Promise<Outcome<true>>) => 'issued' in (await outcome);
      const issueAlone = (token: Artifact, audited: TokenAudit) =>
        isIssued(USER_TOKEN.issue(manager, { token, audit: audited }));
      const issue = async (): Promise<boolean> => {
        const id = randomBytes(32);
        const grant = { ...about, id, sessionId };
        const tokenId = randomBytes(32);
        const token = { ...about, model: 'AccessToken', id: tokenId, grantId: id, userCode: null };
        const note = { auditId: randomUUID(), origin: ORIGIN, details: {} };
        return how === 'together'
          ? (await isIssued(shared.writeGrant(grant))) && isIssued(shared.issueToUser(token, note))
          : (await isIssued(writeGrant(manager, grant))) && issueAlone(token, note);
      };
      const load = Array.from({ length: 12 }, async () => {
        while (await issue()) {
          issued += 1;
          if (issued === 48) underWay.resolve();
        }
      });
      await underWay.promise;
      await act(person.id);
      expect(await left(person.id)).toMatchObject({ oauth_grants: 0, oauth_artifacts: 0 });
      await Promise.all(load);
      expect(await left(person.id)).toMatchObject({ oauth_grants: 0, oauth_artifacts: 0 });
    },
  );

  it('a token or grant that is written during the removal waits, and then fails without its account', async () => {
    const session = await oauth.session(person);
    const { late } = await app.dataSource.transaction(async (tx) => {
      await service.remove(tx, removal());
      return { late: Promise.allSettled([oauth.token(person, { session })]) };
    });
    expect(await late).toMatchObject([{ status: 'rejected', reason: { code: '23503' } }]);
    expect(await left(person.id)).toMatchObject({ oauth_grants: 0, oauth_artifacts: 0 });
  });
});

/**
 * The statements of a deactivation in the order that the requirements demand, each by its first
 * words. A removal sends all but two.
 */
const STEPS = [
  /^\s*SELECT[^]+FROM users[^]+FOR UPDATE/,
  // first, because the triggers of later statements read the cause that it sets
  /^\s*SELECT end_signals/,
  // before the sessions, whose triggers then queue no second notice
  /^\s*INSERT INTO logout_notices/,
  /DELETE FROM sessions/,
  /^\s*DELETE FROM oauth_artifacts WHERE user_id/, // the artifacts whose grants have no session
  /^\s*UPDATE ssh_certificates/,
  /^\s*UPDATE github_tokens/,
  // the tokens of the user's applications; not sent by a removal, whose DELETE of the user cascades
  // to them
  /^\s*DELETE FROM oauth_artifacts a USING/,
  /^\s*UPDATE api_tokens/,
  // not sent by a removal, whose DELETE of the user cascades to the passes
  /^\s*UPDATE enrollment_passes/,
  /UPDATE event_receivers/,
  // only sent by a removal: the large applications, which its DELETE must not cascade to
  /^\s*SELECT id FROM oauth_clients WHERE owner_id/,
  /^\s*(?:DELETE FROM|UPDATE) users/,
  /^\s*INSERT INTO audit_events/,
];

/** Adds the text of every statement that an action sends in a transaction to a list. */
async function recorded(
  tx: EntityManager,
  statements: string[],
  act: () => Promise<unknown>,
): Promise<void> {
  const { queryRunner } = tx;
  if (!queryRunner) throw new Error('no transaction');
  const query = queryRunner.query.bind(queryRunner);
  queryRunner.query = (statement: unknown, ...rest: never[]) => {
    statements.push(statementText(statement));
    return (query as (...all: unknown[]) => Promise<never>)(statement, ...rest);
  };
  try {
    await act();
  } finally {
    queryRunner.query = query;
  }
}
