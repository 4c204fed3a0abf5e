import { randomUUID } from 'node:crypto';
import type { DataSource, EntityManager } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { UsersRepository } from '#domain/directory/users.repository.js';
import { takeNextEnding } from '#domain/access-revocation/ended-reach/endings.repository.js';
import { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
import { GitHubReachEnding } from '#domain/github/tokens/reach-ending.repository.js';
import { GRANT_ENDING } from '#domain/oauth/grants/reach-ending.repository.js';
import { CERTIFICATE_ENDING } from '#domain/ssh/reach-ending.repository.js';
import { systemClock } from '#platform/clock/clock.js';
import { openPool } from '#platform/database/connection.js';
import {
  assign,
  makeGroupRow,
  makeRole,
  queuedEndings,
  setRule,
  unassign,
} from '../../support/access-rows.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import {
  ALL_HELD,
  endedEvents,
  NONE_HELD,
  ReachWorld,
  type Person,
} from '../../support/reach-world.js';
import { RecordingLog } from '../../support/recording-log.js';
import { count, rows } from '../../support/rows.js';

const KINDS = [GRANT_ENDING, CERTIFICATE_ENDING, new GitHubReachEnding({ wakeAfter: () => {} })];

describe('the queue of ended reaches', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let world: ReachWorld;
  let endings: AccessEndings;
  let [inGroup, alone, both]: Person[] = [];
  let group: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 10);
    await run(`INSERT INTO deployment (composition) VALUES ('test')`);
    endings = new AccessEndings(dataSource, systemClock);
    for (const kind of KINDS) endings.register(kind);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  /**
   * Assigns every target to a group (`inGroup` and `both`), and directly to `alone` and to `both`.
   */
  beforeEach(async () => {
    await run('TRUNCATE access_endings, audit_events');
    world = await ReachWorld.found(dataSource);
    [inGroup, alone, both] = await world.people(3);
    group = await makeGroupRow(dataSource, world.orgId, 'g', [idOf(inGroup), idOf(both)]);
    for (const target of Object.values(world.targets)) {
      await assign(dataSource, target, { groupId: group }, of(alone), of(both));
      await setRule(dataSource, target, { access: 'assigned' });
    }
    await endings.drain();
  });

  const run = (statement: string, parameters: unknown[] = []) =>
    dataSource.query(statement, parameters);
  const idOf = (person: Person | undefined) => person?.id ?? '';
  const of = (person: Person | undefined) => ({ userId: idOf(person) });
  const sorted = () => Object.values(world.targets).toSorted();

  async function expectHeld(expected: Record<'inGroup' | 'alone' | 'both', boolean>) {
    for (const [person, keeps] of [
      [inGroup, expected.inGroup],
      [alone, expected.alone],
      [both, expected.both],
    ] as const) {
      expect(await world.held({ id: idOf(person) })).toEqual(keeps ? ALL_HELD : NONE_HELD);
    }
  }

  /**
   * Checks that the queue has one row for each target, with this rule and these people. Null stands
   * for everyone.
   */
  async function expectQueued(rule: string, people: readonly (Person | undefined)[] | null) {
    const queue = await queuedEndings(dataSource);
    expect(queue.map((row) => row.target_id).toSorted()).toEqual(sorted());
    for (const row of queue) {
      expect(row.rule).toBe(rule);
      expect(row.user_ids?.toSorted() ?? null).toEqual(people?.map(idOf).toSorted() ?? null);
    }
  }

  it('ends what a member had by a group, and nothing of a person with another rule', async () => {
    await run('DELETE FROM group_members WHERE group_id = $1', [group]);
    await expectQueued('membership', [inGroup, both]);
    await endings.drain();
    await expectHeld({ inGroup: false, alone: true, both: true });
    expect(await queuedEndings(dataSource)).toEqual([]);
  });

  it('ends what members had by a group that is deleted, by the foreign keys alone', async () => {
    await run('DELETE FROM groups WHERE id = $1', [group]);
    const queue = await queuedEndings(dataSource);
    expect(new Set(queue.map((row) => row.target_id))).toEqual(new Set(sorted()));
    expect(new Set(queue.map((row) => row.rule))).toEqual(new Set(['membership']));
    await endings.drain();
    await expectHeld({ inGroup: false, alone: true, both: true });
    expect((await endedEvents(dataSource)).length).toBe(4);
  });

  it('ends what a person had by an assignment, and nothing of a person with another rule', async () => {
    for (const target of sorted()) {
      await unassign(dataSource, target, of(alone));
      await unassign(dataSource, target, of(both));
    }
    await endings.drain();
    await expectHeld({ inGroup: true, alone: false, both: true });
    await run('TRUNCATE access_endings');
    for (const target of sorted()) await unassign(dataSource, target, { groupId: group });
    // For each target: first a row with the members of the group, and then a row without a list,
    // which covers everyone.
    const queue = await queuedEndings(dataSource);
    const members = [inGroup, both].map(idOf).toSorted();
    for (const target of sorted()) {
      const queued = queue.filter((row) => row.target_id === target);
      expect(queued.map((row) => [row.rule, row.user_ids, row.member_ids?.toSorted()])).toEqual([
        ['assignment', null, members],
        ['assignment', null, undefined],
      ]);
    }
    await endings.drain();
    await expectHeld({ inGroup: false, alone: false, both: false });
  });

  it('lists the people and the members of what one change removes, each in a row', async () => {
    const { hosts } = world.targets;
    const other = await makeGroupRow(dataSource, world.orgId, 'other', [idOf(inGroup)]);
    await assign(dataSource, hosts, { groupId: other });
    await run('DELETE FROM access_assignments WHERE target_id = $1', [hosts]);
    const queue = await queuedEndings(dataSource);
    expect(queue.map((row) => [row.user_ids?.toSorted(), row.member_ids?.toSorted()])).toEqual([
      [[alone, both].map(idOf).toSorted(), undefined],
      [undefined, [inGroup, both].map(idOf).toSorted()],
      [undefined, undefined],
    ]);
    await endings.drain();
    for (const person of [inGroup, alone, both]) {
      expect(await world.held({ id: idOf(person) })).toMatchObject({ certificates: 0 });
    }
  });

  it('records of the members of a removed group only those who held something', async () => {
    const [bare] = await world.people(1, 'a token');
    await run('INSERT INTO group_members VALUES ($1, $2)', [group, idOf(bare)]);
    const queued = await dataSource.transaction(async (tx) => {
      await unassign(tx, world.targets.hosts, { groupId: group });
      return endings.label(tx, {});
    });
    await endings.settle(queued ?? { ids: [] });
    expect((await endedEvents(dataSource)).map(({ subject_id }) => subject_id)).toEqual([
      idOf(inGroup),
    ]);
  });

  it('ends what a rule for everyone gave once only assigned people are admitted', async () => {
    const stranger = await world.person();
    for (const target of sorted()) await setRule(dataSource, target, { access: 'everyone' });
    expect(await queuedEndings(dataSource)).toEqual([]);
    for (const target of sorted()) await setRule(dataSource, target, { access: 'assigned' });
    await expectQueued('rule', null);
    await endings.drain();
    await expectHeld({ inGroup: true, alone: true, both: true });
    expect(await world.held(stranger)).toEqual(NONE_HELD);
  });

  it('tells the admins of an application nothing of a person of another organization', async () => {
    const other = await ReachWorld.found(dataSource);
    const outsider = await other.person();
    const { application } = world.targets;
    await setRule(dataSource, application, { access: 'everyone' });
    await run(
      `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
       VALUES (uuid_send($2), $1, $2, $3, '{}', now() + interval '1 hour')`,
      [world.clientId, outsider.id, outsider.sessionId],
    );
    const queued = await dataSource.transaction(async (tx) => {
      await setRule(tx, application, { access: 'assigned' });
      return endings.label(tx, { actorId: idOf(alone) });
    });
    await endings.settle(queued ?? { ids: [] });
    const grants = 'oauth_grants WHERE user_id = $1 AND client_id = $2';
    expect(await count(dataSource, grants, [outsider.id, world.clientId])).toBe(0);
    const events = await rows(
      dataSource,
      `SELECT org_id, actor_id, actor_email, subject_email, details ->> 'grants' AS grants
       FROM audit_events WHERE type = 'access_ended'`,
    );
    expect(events).toEqual([
      {
        org_id: other.orgId,
        actor_id: null,
        actor_email: null,
        subject_email: outsider.email,
        grants: '1',
      },
    ]);
  });

  it.each([
    ['an age', { touchWithin: 900 }, [true, false, true]],
    ['a FIPS model', { models: 'fips-only' }, [false, true, true]],
    ['user verification', { userVerification: 'required' }, [false, true, true]],
    [
      'all of them',
      { touchWithin: 900, models: 'fips-only', userVerification: 'required' },
      [false, false, true],
    ],
  ] as const)(
    'ends what sessions hold whose touches do not meet %s',
    async (_, condition, keep) => {
      const [a, b, c] = keep;
      const now = Date.now() / 1000;
      await touch(inGroup, { k: { at: now - 60, uv: null, fips: false } });
      await touch(alone, { k: { at: now - 7200, uv: now - 7200, fips: true } });
      await touch(both, {
        k: { at: now - 7200, uv: null, fips: false },
        l: { at: now - 60, uv: now - 60, fips: true },
      });
      // The condition on the age also ends a certificate that is valid for longer than the touch
      // allows. These end in 600 seconds, so that this does not happen here.
      await endCertificatesIn(600);
      for (const target of sorted()) {
        await setRule(dataSource, target, { access: 'assigned', ...condition });
      }
      await expectQueued('condition', null);
      await endings.drain();
      await expectHeld({ inGroup: a, alone: b, both: c });
    },
  );

  async function touch(person: Person | undefined, touches: object): Promise<void> {
    await run('UPDATE sessions SET touches = $2 WHERE id = $1', [person?.sessionId, touches]);
  }

  /** Sets the expiry of the user's certificates, or of all, to some seconds from now. */
  async function endCertificatesIn(seconds: number, userId?: string): Promise<void> {
    for (const table of ['ssh_certificates', 'ssh_certificate_groups']) {
      await run(
        `UPDATE ${table} SET valid_before = now() + make_interval(secs => $1)
         WHERE $2::uuid IS NULL OR user_id = $2`,
        [seconds, userId ?? null],
      );
    }
  }

  it('revokes a certificate that ends later than the newest touch that fits allows', async () => {
    const ago = (seconds: number) => Date.now() / 1000 - seconds;
    const fits = { at: ago(60), uv: null, fips: true };
    // The newest touch by a FIPS key is 800 seconds old. With a limit of 900 it allows a
    // certificate for 100 more seconds.
    const newer = { at: ago(60), uv: null, fips: false };
    await touch(inGroup, { k: newer, l: { ...fits, at: ago(800) } });
    await touch(alone, { k: fits });
    await touch(both, { k: fits });
    await endCertificatesIn(600, idOf(inGroup));
    await endCertificatesIn(600, idOf(alone));
    const { hosts } = world.targets;
    const rule = { access: 'assigned', models: 'fips-only' } as const;
    const kept = async () =>
      Promise.all(
        [inGroup, alone, both].map(
          async (person) => (await world.held({ id: idOf(person) })).certificates,
        ),
      );
    await setRule(dataSource, hosts, rule);
    await endings.drain();
    expect(await kept()).toEqual([1, 1, 1]);
    await setRule(dataSource, hosts, { ...rule, touchWithin: 900 });
    await endings.drain();
    expect(await kept()).toEqual([0, 1, 0]);
    const ended = (await endedEvents(dataSource)).map(
      ({ subject_id, details }) => `${details.rule} ${subject_id}`,
    );
    expect(ended.toSorted()).toEqual(
      [inGroup, both].map((person) => `condition ${idOf(person)}`).toSorted(),
    );
  });

  it('ends nothing when a condition goes, and nothing when a name or a pattern of hosts changes', async () => {
    for (const target of sorted()) {
      await setRule(dataSource, target, { access: 'assigned', models: 'fips-only' });
    }
    await run('TRUNCATE access_endings');
    for (const target of sorted()) await setRule(dataSource, target, { access: 'assigned' });
    await run(`UPDATE access_targets SET hosts = '{other.example}' WHERE id = $1`, [
      world.targets.hosts,
    ]);
    await run(`UPDATE github_installations SET owner = 'renamed' WHERE id = $1`, [
      world.installationId,
    ]);
    await run(`UPDATE oauth_clients SET metadata = '{"client_name": "x"}' WHERE id = $1`, [
      world.clientId,
    ]);
    await endings.drain();
    await expectHeld({ inGroup: true, alone: true, both: true });
    expect(await endedEvents(dataSource)).toEqual([]);
  });

  it.each([
    ['a login', `UPDATE access_targets SET logins = '{ubuntu}' WHERE id = $1`],
    ['the name', `UPDATE access_targets SET name = 'renamed' WHERE id = $1`],
    ['every login', `UPDATE access_targets SET logins = '{}' WHERE id = $1`],
    ['the group of hosts', 'DELETE FROM access_targets WHERE id = $1'],
  ])('revokes the certificates with principals of which %s is gone', async (_, change) => {
    await run(change, [world.targets.hosts]);
    await endings.drain();
    for (const person of [inGroup, alone, both]) {
      expect(await world.held({ id: idOf(person) })).toEqual({ ...ALL_HELD, certificates: 0 });
    }
  });

  it('ends what the people of an organization hold once the application is another one’s', async () => {
    const other = await ReachWorld.found(dataSource);
    await run('UPDATE oauth_clients SET org_id = $2 WHERE id = $1', [world.clientId, other.orgId]);
    await endings.drain();
    for (const person of [inGroup, alone, both]) {
      const left = { ...ALL_HELD, grants: 0, codes: 0, tokens: 0 };
      expect(await world.held({ id: idOf(person) })).toEqual(left);
    }
    // The events are those of the first organization alone, and the target of the application,
    // which the other organization has now, has no assignments.
    const events = await endedEvents(dataSource);
    expect(events.map(({ org_id }) => org_id)).toEqual([world.orgId, world.orgId, world.orgId]);
    const targets = await rows(
      dataSource,
      `SELECT t.org_id, t.access, (SELECT count(*)::int FROM access_assignments x WHERE x.target_id = t.id) AS assignments
       FROM access_targets t WHERE t.client_id = $1`,
      [world.clientId],
    );
    expect(targets).toEqual([{ org_id: other.orgId, access: 'assigned', assignments: 0 }]);
  });

  it('queues nothing for a person who is removed, whose account ends all', async () => {
    await run('DELETE FROM oauth_grants WHERE user_id = $1', [idOf(both)]);
    await run('DELETE FROM users WHERE id = $1', [idOf(both)]);
    expect(await queuedEndings(dataSource)).toEqual([]);
  });

  it('moves what is assigned to a person along with the person, out of a record', async () => {
    const newId = randomUUID();
    await dataSource.transaction((tx) => new UsersRepository().movePerson(tx, idOf(alone), newId));
    const assigned = await rows(
      dataSource,
      'SELECT user_id, count(*)::int AS n FROM access_assignments WHERE user_id = ANY ($1) GROUP BY user_id',
      [[idOf(alone), newId]],
    );
    expect(assigned).toEqual([{ user_id: newId, n: 4 }]);
    expect(await queuedEndings(dataSource)).toEqual([]);
  });

  it('queues nothing for a group without assignments, or whose targets admit everyone', async () => {
    const free = await makeGroupRow(dataSource, world.orgId, 'free', [idOf(inGroup)]);
    for (const target of sorted()) await setRule(dataSource, target, { access: 'everyone' });
    await run('DELETE FROM groups WHERE id = ANY ($1)', [[free, group]]);
    expect(await queuedEndings(dataSource)).toEqual([]);
  });

  it('queues nothing for a change that is rolled back', async () => {
    const failing = dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM groups WHERE id = $1', [group]);
      expect(await endings.label(tx, { actorId: idOf(alone) })).toBeDefined();
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    expect(await queuedEndings(dataSource)).toEqual([]);
    await endings.drain();
    await expectHeld({ inGroup: true, alone: true, both: true });
  });

  it('ends nothing of a member who is added again before the worker comes', async () => {
    await run('DELETE FROM group_members WHERE group_id = $1', [group]);
    await run('INSERT INTO group_members (group_id, user_id) VALUES ($1, $2)', [
      group,
      idOf(inGroup),
    ]);
    await endings.drain();
    await expectHeld({ inGroup: true, alone: true, both: true });
    expect(await endedEvents(dataSource)).toEqual([]);
  });

  it('ends grants in smaller batches if a statement exceeds its time limit', async () => {
    await run(`CREATE FUNCTION exceed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM gone) > 1 THEN RAISE 'canceled' USING ERRCODE = '57014'; END IF;
      RETURN NULL; END $$`);
    await run(`CREATE TRIGGER exceed AFTER DELETE ON oauth_grants REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION exceed()`);
    try {
      const { application } = world.targets;
      await setRule(dataSource, application, { access: 'everyone' });
      await run('DELETE FROM access_assignments WHERE target_id = $1', [application]);
      await setRule(dataSource, application, { access: 'assigned' });
      // Batches of 500, 50 and 5 grants exceed the limit, each in one pass over the queue.
      for (let pass = 1; pass <= 3; pass += 1) {
        await expect(endings.drain()).rejects.toThrow('canceled');
        // Another process works on the row meanwhile, so that this one finds nothing to do.
        await dataSource.transaction(async (tx) => {
          expect((await takeNextEnding(tx, '0'))?.targetId).toBe(application);
          await endings.drain();
        });
      }
      await endings.drain();
    } finally {
      await run('DROP TRIGGER exceed ON oauth_grants');
      await run('DROP FUNCTION exceed()');
    }
    expect(await queuedEndings(dataSource)).toEqual([]);
    for (const person of [inGroup, alone, both]) {
      expect(await world.held({ id: idOf(person) })).toMatchObject({ grants: 0, tokens: 0 });
    }
  });

  it('records one event for each person and target, with the admin or the SCIM token', async () => {
    const [admin, token] = [randomUUID(), randomUUID()];
    const queued = await dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM groups WHERE id = $1', [group]);
      return endings.label(tx, { actorId: admin, scimTokenId: token, requestId: 'request-7' });
    });
    await endings.settle(queued ?? { ids: [] });
    await endings.drain();
    const events = await endedEvents(dataSource);
    expect(events.map(({ details }) => details.target.kind).toSorted()).toEqual([
      'application',
      'application',
      'github_installation',
      'host_group',
    ]);
    for (const event of events) {
      expect(event).toMatchObject({
        subject_id: idOf(inGroup),
        actor_id: admin,
        org_id: world.orgId,
      });
      expect(event.details).toMatchObject({ rule: 'membership', scim_token_id: token });
    }
  });

  it('records people of a row who held nothing, once for each target, also for a role of AWS', async () => {
    const role = await makeRole(dataSource, world.orgId, 'arn:aws:iam::123456789012:role/r');
    await assign(dataSource, role, { groupId: group }, of(both));
    await setRule(dataSource, role, { access: 'assigned' });
    await endings.drain();
    const [bare, inactive] = (await world.people(2, 'a token')) as [Person, Person];
    for (const { id } of [bare, inactive]) {
      await run('INSERT INTO group_members VALUES ($1, $2)', [group, id]);
    }
    await run('UPDATE users SET active = false WHERE id = $1', [inactive.id]);
    const queued = await dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM group_members WHERE group_id = $1', [group]);
      return endings.label(tx, { requestId: 'request-9' });
    });
    await endings.settle(queued ?? { ids: [] });
    expect(await queuedEndings(dataSource)).toEqual([]);
    const ended = (await endedEvents(dataSource)).map(
      ({ subject_id, details: { target, rule, ...counts } }) => {
        return { who: subject_id, kind: target.kind, rule, holds: Object.keys(counts) };
      },
    );
    const kindsOf = (person: Person | undefined, isEmpty: boolean) =>
      ended
        .filter(({ who, holds }) => who === person?.id && (holds.length === 0) === isEmpty)
        .map(({ kind }) => kind)
        .toSorted();
    expect(kindsOf(inGroup, true)).toEqual(['aws_role']);
    expect(kindsOf(inGroup, false)).toEqual([
      'application',
      'application',
      'github_installation',
      'host_group',
    ]);
    expect(kindsOf(bare, false)).toEqual(['application']);
    expect(kindsOf(bare, true)).toEqual([
      'application',
      'aws_role',
      'github_installation',
      'host_group',
    ]);
    expect(new Set(ended.map(({ rule }) => rule))).toEqual(new Set(['membership']));
    // Events that list nothing that ended are missing for `both`, because another rule admits this
    // user. They are missing for the inactive user, whose deactivation has recorded its own events.
    const others = ended.filter(({ who }) => who === both?.id || who === inactive.id);
    expect(others.filter(({ holds }) => holds.length === 0)).toEqual([]);
  });

  /** Records further certificates of a person like those that the person has. */
  const giveCertificates = (tx: Pick<EntityManager, 'query'>, personId: string, number: number) =>
    tx.query(
      `WITH given AS (
         INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
         SELECT nextval('ssh_certificate_serial'), c.user_id, c.org_id, c.session_id, c.key_id, c.principals, c.public_key, c.ca_fingerprint,
                c.valid_after, c.valid_before
         FROM ssh_certificates c CROSS JOIN generate_series(1, $3) WHERE c.user_id = $1
         RETURNING serial, user_id, session_id, valid_before
       )
       INSERT INTO ssh_certificate_groups (target_id, serial, user_id, session_id, principals, valid_before)
       SELECT t.id, g.serial, g.user_id, g.session_id, t.principals, g.valid_before FROM given g CROSS JOIN access_targets t
       WHERE t.id = $2`,
      [personId, world.targets.hosts, number],
    );

  it('settles what a person holds in more items than there are people', async () => {
    await giveCertificates(dataSource, idOf(inGroup), 1_100);
    const queued = await dataSource.transaction(async (tx) => {
      await unassign(tx, world.targets.hosts, { groupId: group });
      return endings.label(tx, {});
    });
    await endings.settle(queued ?? { ids: [] });
    expect(await queuedEndings(dataSource)).toEqual([]);
    expect(await world.held({ id: idOf(inGroup) })).toMatchObject({ certificates: 0 });
  });

  /**
   * Removes a person from the group, and settles the rows that this puts into the queue. Returns
   * the number of transactions that the settling took.
   */
  async function settledTransactions(): Promise<number> {
    const queued = await dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM group_members WHERE group_id = $1 AND user_id = $2', [
        group,
        idOf(inGroup),
      ]);
      return endings.label(tx, {});
    });
    const transactions = vi.spyOn(dataSource, 'transaction');
    await endings.settle(queued ?? { ids: [] });
    const number = transactions.mock.calls.length;
    transactions.mockRestore();
    return number;
  }

  it('settles the many targets of one person in few transactions', async () => {
    const roles = 120;
    await run(
      `WITH made AS (
         INSERT INTO access_targets (org_id, kind, role_arn, name, access)
         SELECT $1, 'aws_role', 'arn:aws:iam::123456789012:role/many-' || n, 'many', 'assigned' FROM generate_series(1, $3::int) n
         RETURNING id
       )
       INSERT INTO access_assignments (target_id, group_id) SELECT id, $2 FROM made`,
      [world.orgId, group, roles],
    );
    expect(await settledTransactions()).toBeLessThan(10);
    await run(`DELETE FROM access_targets WHERE name = 'many'`);
    expect(await queuedEndings(dataSource)).toEqual([]);
    await expectHeld({ inGroup: false, alone: true, both: true });
    const targets = (await endedEvents(dataSource)).map(({ details }) => details.target.id);
    expect(targets).toHaveLength(roles + Object.keys(world.targets).length);
    expect(new Set(targets).size).toBe(targets.length);
  });

  it('settles the many applications of one person in few transactions', async () => {
    const applications = 120;
    await run(
      `INSERT INTO oauth_clients (id, kind, metadata, org_id, owner_id)
       SELECT 'many-' || n, 'application', '{}', $1, $3 FROM generate_series(1, $2::int) n`,
      [world.orgId, applications, idOf(alone)],
    );
    await run(
      `INSERT INTO access_assignments (target_id, group_id) SELECT id, $1 FROM access_targets WHERE client_id LIKE 'many-%'`,
      [group],
    );
    await run(`UPDATE access_targets SET access = 'assigned' WHERE client_id LIKE 'many-%'`);
    await endings.drain();
    const number = await settledTransactions();
    await run(`DELETE FROM oauth_clients WHERE id LIKE 'many-%'`);
    expect(number).toBeLessThan(10);
    expect(await queuedEndings(dataSource)).toEqual([]);
    await expectHeld({ inGroup: false, alone: true, both: true });
    const targets = (await endedEvents(dataSource)).map(({ details }) => details.target.id);
    expect(new Set(targets).size).toBe(applications + Object.keys(world.targets).length);
  });

  it('checks each certificate at most twice, by a plan from a time with few of them', async () => {
    const certificates = 300;
    const scans = `SELECT (coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int AS number
                   FROM pg_stat_xact_user_tables WHERE relname = 'access_targets'`;
    await dataSource.transaction(async (tx) => {
      await tx.query('SET LOCAL plan_cache_mode = force_generic_plan');
      await tx.query('DELETE FROM ssh_certificate_groups');
      const endBatch = async () => {
        const ending = await takeNextEnding(tx, '0');
        if (!ending) throw new Error('nothing is queued');
        return CERTIFICATE_ENDING.endBatch(tx, ending, 1_000);
      };
      await unassign(tx, world.targets.hosts, { groupId: group });
      await endBatch();
      await giveCertificates(tx, idOf(inGroup), certificates);
      const [before] = await tx.query<{ number: number }[]>(scans);
      expect(await endBatch()).toMatchObject({ ended: [{ counts: { certificates } }] });
      const [after] = await tx.query<{ number: number }[]>(scans);
      expect((after?.number ?? 0) - (before?.number ?? 0)).toBeLessThan(certificates * 3);
    });
  });

  it('settles each person of a list, and the first 1,000 people of a row without one', async () => {
    const target = world.targets.application;
    const people = await world.people(1_600, 'a token');
    const ids = people.map(({ id }) => id);
    const left = () =>
      count(dataSource, 'oauth_grants WHERE client_id = $1 AND user_id = ANY ($2)', [
        world.clientId,
        ids,
      ]);
    const listed = await makeGroupRow(dataSource, world.orgId, 'listed', ids.slice(0, 1_000));
    const unlisted = await makeGroupRow(dataSource, world.orgId, 'unlisted', ids);
    await assign(dataSource, target, { groupId: listed }, { groupId: unlisted });
    const queued = await dataSource.transaction(async (tx) => {
      // The membership must end first: once a row for everyone of a target is queued, the end of a
      // membership queues no row for that target.
      await tx.query('DELETE FROM group_members WHERE group_id = $1', [listed]);
      await unassign(tx, target, { groupId: unlisted });
      return endings.label(tx, {});
    });
    await endings.settle(queued ?? { ids: [] });
    const ofList = await endedEvents(dataSource);
    expect(ofList.filter(({ details }) => details.rule === 'membership')).toHaveLength(1_000);
    const [open] = await queuedEndings(dataSource);
    expect(open).toMatchObject({ rule: 'assignment', user_ids: null });
    expect(await left()).toBeGreaterThan(0);
    await endings.drain();
    expect(await left()).toBe(0);
  });

  it('does not name the group in an event', async () => {
    await run(`UPDATE groups SET display_name = 'planted-name' WHERE id = $1`, [group]);
    await run('DELETE FROM groups WHERE id = $1', [group]);
    await endings.drain();
    const events = JSON.stringify(await rows(dataSource, 'SELECT * FROM audit_events'));
    expect(events).not.toContain('planted-name');
    expect(events).not.toContain(group);
  });

  describe('beside changes that have not committed', () => {
    /**
     * Makes a change in a transaction, begins a second one in another transaction, and commits the
     * first when the second waits for its locks. Returns when both are committed.
     */
    async function during(
      first: (tx: EntityManager) => Promise<unknown>,
      second: (tx: EntityManager) => Promise<unknown>,
    ): Promise<void> {
      const { other } = await dataSource.transaction(async (tx) => {
        await first(tx);
        const waiting = dataSource.transaction(second);
        await untilWaiting(dataSource, 1);
        return { other: waiting };
      });
      await other;
    }

    const leave = (tx: EntityManager) =>
      tx
        .query('SELECT FROM groups WHERE id = $1 FOR NO KEY UPDATE', [group])
        .then(() => tx.query('DELETE FROM group_members WHERE group_id = $1', [group]));

    it('ends what a leaving member has when the target becomes assigned meanwhile', async () => {
      for (const target of sorted()) await setRule(dataSource, target, { access: 'everyone' });
      for (const target of sorted()) {
        await run('INSERT INTO group_members VALUES ($1, $2) ON CONFLICT DO NOTHING', [
          group,
          idOf(inGroup),
        ]);
        await during(leave, (tx) => setRule(tx, target, { access: 'assigned' }));
      }
      await endings.drain();
      await expectHeld({ inGroup: false, alone: true, both: true });
    });

    it('ends what a leaving member has when the group is assigned meanwhile', async () => {
      const { application } = world.targets;
      await unassign(dataSource, application, { groupId: group });
      await setRule(dataSource, application, { access: 'everyone' });
      await run('TRUNCATE access_endings');
      await during(leave, async (tx) => {
        await setRule(tx, application, { access: 'assigned' });
        await assign(tx, application, { groupId: group });
      });
      await endings.drain();
      expect(await world.held({ id: idOf(inGroup) })).toMatchObject({
        grants: 0,
        tokens: 0,
        codes: 0,
      });
    });

    it('waits in a settle for the batch of another process on the row, and then has the end', async () => {
      const queued = await dataSource.transaction(async (tx) => {
        await tx.query('DELETE FROM groups WHERE id = $1', [group]);
        return endings.label(tx, {});
      });
      const { settled } = await dataSource.transaction(async (tx) => {
        await tx.query('SELECT FROM access_endings FOR UPDATE');
        const settling = endings.settle(queued ?? { ids: [] });
        await untilWaiting(dataSource, 1);
        return { settled: settling };
      });
      await settled;
      await expectHeld({ inGroup: false, alone: true, both: true });
    });
  });

  it('gives each row to one of two processes, and records each end once', async () => {
    const people = await world.people(30);
    for (const { id } of people) {
      await run('INSERT INTO group_members VALUES ($1, $2)', [group, id]);
    }
    for (const { id } of people) await run('DELETE FROM group_members WHERE user_id = $1', [id]);
    expect((await queuedEndings(dataSource)).length).toBe(4 * people.length);
    const second = new AccessEndings(dataSource, systemClock);
    for (const kind of KINDS) second.register(kind);
    await Promise.all([endings.drain(), second.drain()]);
    expect(await queuedEndings(dataSource)).toEqual([]);
    const ended = (await endedEvents(dataSource)).map(
      ({ subject_id, details }) => `${subject_id} ${details.target.id}`,
    );
    expect(ended.length).toBe(4 * people.length);
    expect(new Set(ended).size).toBe(4 * people.length);
  });

  it('works on each row in turn, so that a row that fails delays no other one', async () => {
    await run('DELETE FROM group_members WHERE group_id = $1', [group]);
    const [first] = await queuedEndings(dataSource);
    await run(
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted'; END $$`,
    );
    await run(`CREATE TRIGGER fail BEFORE DELETE ON access_endings FOR EACH ROW
      WHEN (OLD.target_id = '${first?.target_id}') EXECUTE FUNCTION fail()`);
    await expect(endings.drain()).rejects.toThrow('planted');
    for (let tries = 0; tries < 4; tries += 1) await endings.drain().catch(() => {});
    expect(await queuedEndings(dataSource)).toEqual([first]);
    await run('DROP TRIGGER fail ON access_endings');
    await endings.drain();
    await expectHeld({ inGroup: false, alone: true, both: true });
  });
});
