import { randomBytes, randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IssuanceKind } from '#domain/access/issuance/issuance.repository.js';
import { AWS_TOKEN } from '#domain/aws/aws-tokens.repository.js';
import { GITHUB_TOKEN } from '#domain/github/tokens/github-tokens.repository.js';
import { GRANT } from '#domain/oauth/grants/grants.repository.js';
import { CLUSTER_TOKEN, USER_TOKEN } from '#domain/oauth/grants/tokens.repository.js';
import {
  certificateKindOf,
  checkingKindOf,
  type SshCertificateRequest,
  type UncheckedCaller,
} from '#domain/ssh/ssh-certificates.repository.js';
import { openPool } from '#platform/database/connection.js';
import { assign, makeGroupRow, makeRole, setRule, unassign } from '../../support/access-rows.js';
import { newAddress } from '../../support/client.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { ParkedIssuers } from '../../support/parked-issuers.js';
import { certificateRequest, ReachWorld, type Person } from '../../support/reach-world.js';
import { RecordingLog } from '../../support/recording-log.js';
import { count, rows } from '../../support/rows.js';
import { untilWaiting } from '../../support/lock-waiters.js';

const ROLE = 'arn:aws:iam::123456789012:role/production';
const ORIGIN = { requestId: 'request-1', ip: undefined, userAgent: undefined };

/**
 * A kind of credential: its target, a person's request for it, and the SQL that removes the target.
 */
interface Subject {
  readonly kind: IssuanceKind<unknown, unknown>;
  readonly target: () => string;
  readonly request: (person: Person) => Promise<unknown>;
  readonly remove: string;
}

describe('issuing beside the end of a reach', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let parked: ParkedIssuers;
  let world: ReachWorld;
  let role: string;
  let group: string;
  let person: Person;
  let neighbour: Person;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 10);
    await run(`INSERT INTO deployment (composition) VALUES ('test')`);
    parked = await ParkedIssuers.install(dataSource);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });
  beforeEach(async () => {
    world = await ReachWorld.found(dataSource);
    role = await makeRole(dataSource, world.orgId, ROLE);
    [person, neighbour] = (await world.people(2)) as [Person, Person];
    group = await makeGroupRow(dataSource, world.orgId, 'g', [person.id]);
  });

  const run = (statement: string, parameters: unknown[] = []) =>
    dataSource.query(statement, parameters);

  const grantOf = async (userId: string, clientId: string) => {
    const [grant] = await rows<{ id: Buffer }>(
      dataSource,
      'SELECT id FROM oauth_grants WHERE user_id = $1 AND client_id = $2',
      [userId, clientId],
    );
    return grant?.id ?? null;
  };

  async function uncheckedCaller({ sessionId }: Person): Promise<UncheckedCaller> {
    const [session] = await rows<{ token_hash: Buffer }>(
      dataSource,
      'SELECT token_hash FROM sessions WHERE id = $1',
      [sessionId],
    );
    const hash = session?.token_hash ?? Buffer.alloc(32);
    const bucket = { key: `issuance ${newAddress()}`, tier: 'issuance' } as const;
    return { token: { kind: 'own', hash, proof: undefined }, bucket };
  }

  async function tokenRequest({ id: userId }: Person, clientId: string) {
    return {
      token: {
        model: 'AccessToken',
        id: randomBytes(32),
        payload: {},
        grantId: await grantOf(userId, clientId),
        clientId,
        userId,
        userCode: null,
        expiresIn: 300,
      },
      audit: { auditId: randomUUID(), origin: ORIGIN, details: { issued: 'by this test' } },
    };
  }

  // Codes and exchanged tokens are not listed: a code is issued only with a grant, and an exchange
  // issues its token by the statement of `USER_TOKEN`.
  const SUBJECTS: Readonly<Record<string, Subject>> = {
    'a grant': {
      kind: GRANT as never,
      target: () => world.targets.application,
      request: async ({ id, sessionId }) => ({
        id: randomBytes(32),
        clientId: world.clientId,
        userId: id,
        sessionId,
        payload: {},
        expiresIn: 600,
      }),
      remove:
        'DELETE FROM oauth_clients WHERE id = (SELECT client_id FROM access_targets WHERE id = $1)',
    },
    'a token': {
      kind: USER_TOKEN as never,
      target: () => world.targets.application,
      request: (of) => tokenRequest(of, world.clientId),
      remove:
        'DELETE FROM oauth_clients WHERE id = (SELECT client_id FROM access_targets WHERE id = $1)',
    },
    'a token for a cluster': {
      kind: CLUSTER_TOKEN as never,
      target: () => world.targets.cluster,
      request: async (of) => ({
        ...(await tokenRequest(of, 'svc-cli')),
        applicationId: world.clusterId,
      }),
      remove:
        'DELETE FROM oauth_clients WHERE id = (SELECT client_id FROM access_targets WHERE id = $1)',
    },
    'a token for AWS': {
      kind: AWS_TOKEN as never,
      target: () => role,
      request: async ({ id, email, sessionId }) => ({
        userId: id,
        sessionId,
        email,
        roleArn: ROLE,
        isReadOnly: false,
        tokenId: randomUUID(),
        sourceIdentity: 'person',
        lifetime: 300,
        auditId: randomUUID(),
        origin: ORIGIN,
      }),
      remove: 'DELETE FROM access_targets WHERE id = $1',
    },
    'an SSH certificate': {
      kind: {
        issue: (tx: never, request: never) => certificateKindOf(request).issue(tx, request),
        issueUnlocked: (tx: never, requests: never[]) =>
          certificateKindOf(requests[0] as never).issueUnlocked(tx, requests),
      } as never,
      target: () => world.targets.hosts,
      request: (of) => certificateRequest(dataSource, world.targets.hosts, of),
      remove: 'DELETE FROM access_targets WHERE id = $1',
    },
    'an SSH certificate whose statement also finds the caller': {
      kind: {
        issue: (tx: never, request: never) => certificateKindOf(request).issue(tx, request),
        issueUnlocked: (tx: never, requests: never[]) => {
          const [first] = requests as unknown as [SshCertificateRequest];
          const kind = checkingKindOf(first, first.unchecked as UncheckedCaller, true);
          return kind.issueUnlocked(tx, requests);
        },
      } as never,
      target: () => world.targets.hosts,
      request: async (of) => ({
        ...(await certificateRequest(dataSource, world.targets.hosts, of)),
        unchecked: await uncheckedCaller(of),
      }),
      remove: 'DELETE FROM access_targets WHERE id = $1',
    },
    'a token for GitHub': {
      kind: GITHUB_TOKEN as never,
      target: () => world.targets.installation,
      request: async ({ id, sessionId }) => ({
        id: randomUUID(),
        userId: id,
        orgId: world.orgId,
        sessionId,
        installationId: world.installationId,
        owner: 'octo',
        sealed: 'sealed',
        expiresAt: new Date(Date.now() + 3_600_000),
        repositories: ['hello'],
        permissions: {},
        auditId: randomUUID(),
        origin: ORIGIN,
      }),
      remove:
        'DELETE FROM github_installations WHERE id = (SELECT installation_id FROM access_targets WHERE id = $1)',
    },
  };

  /** For each change: what admits the person before it, and the change, which ends the reach. */
  const CHANGES: Readonly<
    Record<
      string,
      readonly [
        before: (id: string) => Promise<unknown>,
        change: (id: string, s: Subject) => Promise<unknown>,
      ]
    >
  > = {
    'a membership ends': [
      (id) => assignedTo(id, { groupId: group }),
      () => run('DELETE FROM group_members WHERE user_id = $1', [person.id]),
    ],
    'the group is deleted': [
      (id) => assignedTo(id, { groupId: group }),
      () => run('DELETE FROM groups WHERE id = $1', [group]),
    ],
    'the assignment of the group ends': [
      (id) => assignedTo(id, { groupId: group }),
      (id) => unassign(dataSource, id, { groupId: group }),
    ],
    'the assignment of the person ends': [
      (id) => assignedTo(id, { userId: person.id }),
      (id) => unassign(dataSource, id, { userId: person.id }),
    ],
    'the target admits only assigned people': [
      async () => {},
      (id) => setRule(dataSource, id, { access: 'assigned' }),
    ],
    'the target demands an age of the touch': [
      async () => {},
      (id) => setRule(dataSource, id, { touchWithin: 60 }),
    ],
    'the target demands a FIPS model': [
      async () => {},
      (id) => setRule(dataSource, id, { models: 'fips-only' }),
    ],
    'the target is removed': [
      (id) => assignedTo(id, { userId: person.id }),
      (id, { remove }) =>
        dataSource.transaction(async (tx) => {
          await tx.query(`UPDATE organizations SET aws_roles = 'listed' WHERE id = $1`, [
            world.orgId,
          ]);
          await tx.query(remove, [id]);
        }),
    ],
  };

  async function assignedTo(target: string, to: Parameters<typeof assign>[2]): Promise<void> {
    await setRule(dataSource, target, { access: 'assigned' });
    await assign(dataSource, target, to);
  }

  const written = () =>
    count(
      dataSource,
      `(SELECT id FROM oauth_grants UNION ALL SELECT id FROM oauth_artifacts UNION ALL SELECT uuid_send(id) FROM github_tokens
        UNION ALL SELECT uuid_send(id) FROM audit_events UNION ALL SELECT int8send(serial) FROM ssh_certificates) written`,
    );

  const WAYS = {
    alone: (kind: Subject['kind'], requests: readonly unknown[]) =>
      Promise.all(requests.map((request) => kind.issue(dataSource.manager, request))),
    'in a batch': (kind: Subject['kind'], requests: readonly unknown[]) =>
      kind.issueUnlocked(dataSource.manager, requests),
  };

  type Way = keyof typeof WAYS;
  const CASES = Object.keys(SUBJECTS).flatMap((subject) =>
    Object.keys(CHANGES).flatMap((change) =>
      (Object.keys(WAYS) as Way[]).map((way) => [subject, change, way] as const),
    ),
  );

  it.each(CASES)('refuses %s whose statement began before %s, %s', async (name, how, way) => {
    const subject = SUBJECTS[name] as Subject;
    const [before, change] = CHANGES[how] as (typeof CHANGES)[string];
    await before(subject.target());
    const issue = async (request: unknown) => (await WAYS[way](subject.kind, [request]))[0];
    expect(await issue(await subject.request(person))).toHaveProperty('issued');

    const request = await subject.request(person);
    let onRecord = 0;
    const outcome = await parked.during(
      () => issue(request),
      async () => {
        await change(subject.target(), subject);
        onRecord = await written();
      },
    );
    expect(outcome).toHaveProperty('denial');
    expect(await written()).toBe(onRecord);
  });

  it('issues to a person of the same batch whose reach did not end', async () => {
    const subject = SUBJECTS['a token'] as Subject;
    await assignedTo(subject.target(), { groupId: group });
    await assign(dataSource, subject.target(), { userId: neighbour.id });
    const requests = [await subject.request(person), await subject.request(neighbour)];
    const outcomes = await parked.during(
      () => WAYS['in a batch'](subject.kind, requests),
      () => run('DELETE FROM group_members WHERE user_id = $1', [person.id]),
    );
    // The snapshot of the batch is older than the change: both are refused as `changed`, so that
    // the service decides about each again in a statement of its own.
    expect(outcomes).toEqual([{ denial: 'changed' }, { denial: 'changed' }]);
    const again = await WAYS.alone(subject.kind, requests);
    expect(again).toEqual([{ denial: 'not_assigned' }, { issued: true }]);
  });

  it.each(Object.keys(WAYS) as Way[])(
    'sees a role that is added for assigned people after the statement began, %s',
    async (way) => {
      const subject = SUBJECTS['a token for AWS'] as Subject;
      const added = `${ROLE}-${way.length}`;
      const request = { ...((await subject.request(person)) as object), roleArn: added };
      const [outcome] = await parked.during(
        () => WAYS[way](subject.kind, [request]),
        () => makeRole(dataSource, world.orgId, added, { access: 'assigned' }),
      );
      expect(outcome).toEqual({ denial: way === 'alone' ? 'not_assigned' : 'changed' });
    },
  );

  it.each(Object.keys(WAYS) as Way[])(
    'demands a role of a statement that began before the first role got a rule, %s',
    async (way) => {
      const subject = SUBJECTS['a token for AWS'] as Subject;
      const request = { ...((await subject.request(person)) as object), roleArn: null };
      const [outcome] = await parked.during(
        () => WAYS[way](subject.kind, [request]),
        () => setRule(dataSource, role, { touchWithin: 60 }),
      );
      expect(outcome).toEqual({ denial: way === 'alone' ? 'role_required' : 'changed' });
    },
  );

  it('admits a person who is assigned while the rule becomes narrower', async () => {
    const subject = SUBJECTS['a token'] as Subject;
    const request = await subject.request(person);
    const outcome = await parked.during(
      () => subject.kind.issue(dataSource.manager, request),
      () => assignedTo(subject.target(), { userId: person.id }),
    );
    expect(outcome).toEqual({ issued: true });
  });

  it('waits for a change that commits at this moment, and is then refused', async () => {
    const subject = SUBJECTS['a token'] as Subject;
    await assignedTo(subject.target(), { groupId: group });
    const { attempt } = await dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM groups WHERE id = $1', [group]);
      await tx.query('SET CONSTRAINTS ALL IMMEDIATE');
      const request = await subject.request(person);
      const issuing = subject.kind.issue(dataSource.manager, request);
      await untilWaiting(dataSource, 1);
      return { attempt: issuing };
    });
    expect(await attempt).toEqual({ denial: 'not_assigned' });
  });

  it('does not wait for a change that has not committed, whose commit waits for it', async () => {
    const subject = SUBJECTS['a token'] as Subject;
    await assignedTo(subject.target(), { groupId: group });
    const issuer = dataSource.createQueryRunner();
    const change = dataSource.createQueryRunner();
    try {
      await issuer.startTransaction();
      await change.startTransaction();
      await change.query('DELETE FROM groups WHERE id = $1', [group]);
      const request = await subject.request(person);
      expect(await subject.kind.issue(issuer.manager, request)).toEqual({ issued: true });
      const committing = change.commitTransaction();
      await untilWaiting(dataSource, 1);
      await issuer.commitTransaction();
      await committing;
    } finally {
      await issuer.release();
      await change.release();
    }
    expect(await subject.kind.issue(dataSource.manager, await subject.request(person))).toEqual({
      denial: 'not_assigned',
    });
  });

  it('waits for an admin who holds the organization before it locks the rules, without a deadlock', async () => {
    const subject = SUBJECTS['a token for GitHub'] as Subject;
    await run('UPDATE organizations SET github_all_repositories = true WHERE id = $1', [
      world.orgId,
    ]);
    const request = { ...((await subject.request(person)) as object), repositories: null };
    const { attempt } = await dataSource.transaction(async (tx) => {
      await tx.query('SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE', [world.orgId]);
      await tx.query('UPDATE access_targets SET updated_at = now() WHERE id = $1', [
        subject.target(),
      ]);
      const issuing = subject.kind.issue(dataSource.manager, request);
      await untilWaiting(dataSource, 1);
      return { attempt: issuing };
    });
    expect(await attempt).toHaveProperty('issued');
  });

  it('is decided at the second try while one change after another commits', async () => {
    const subject = SUBJECTS['a token'] as Subject;
    await assignedTo(subject.target(), { userId: person.id });
    const over = new AbortController();
    const changes = async () => {
      while (!over.signal.aborted) {
        await run('UPDATE access_targets SET updated_at = now() WHERE id = $1', [subject.target()]);
      }
    };
    const changing = Promise.all([changes(), changes(), changes()]);
    const outcomes: unknown[] = [];
    for (let n = 0; n < 30; n += 1) {
      outcomes.push(await subject.kind.issue(dataSource.manager, await subject.request(person)));
    }
    over.abort();
    await changing;
    expect(outcomes).toEqual(outcomes.map(() => ({ issued: true })));
  });
});
