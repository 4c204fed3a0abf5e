import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { IssuanceKind } from '#domain/access/issuance/issuance.repository.js';
import type { Ending, ReachEnding } from '#domain/access-revocation/ended-reach/reach-ending.js';
import { AWS_TOKEN } from '#domain/aws/aws-tokens.repository.js';
import { GITHUB_TOKEN } from '#domain/github/tokens/github-tokens.repository.js';
import { GitHubReachEnding } from '#domain/github/tokens/reach-ending.repository.js';
import { GRANT } from '#domain/oauth/grants/grants.repository.js';
import { GRANT_ENDING } from '#domain/oauth/grants/reach-ending.repository.js';
import { CLIENT_TOKEN, CLUSTER_TOKEN, USER_TOKEN } from '#domain/oauth/grants/tokens.repository.js';
import { CERTIFICATE_ENDING } from '#domain/ssh/reach-ending.repository.js';
import {
  certificateKindOf,
  kindWithoutGroups,
  type SshCertificateRequest,
} from '#domain/ssh/ssh-certificates.repository.js';
import { openPool } from '#platform/database/connection.js';
import { assign, makeGroupRow, makeRole, setRule } from '../../support/access-rows.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { ReachWorld, type Person } from '../../support/reach-world.js';
import { RecordingLog } from '../../support/recording-log.js';
import { rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';
import { literal } from '../../support/sql-literal.js';

const PEOPLE = atScale({ small: 1_000, full: 30_000 });
const GROUPS = atScale({ small: 500, full: 1_000 });
const CHUNK = 500;
const ROLE = 'arn:aws:iam::123456789012:role/production';
const ORIGIN = { requestId: 'request-1', ip: undefined, userAgent: undefined };

/**
 * The tables of rules that grow with people, and whose reads are limited. The targets of one
 * organization fit on a few pages, so that reading all of them is cheap.
 */
const RULES = new Set(['access_assignments', 'group_members']);

/**
 * The fields of a request with a key that is not on a security key, without any principals except
 * those of groups.
 */
const PLAIN_KEY = { isSecurityKey: false, principals: [], principalsElsewhere: [] };

/** Principals that do not come from groups. */
const ADDRESS = { principals: ['mail'], principalsElsewhere: ['mail'] };

/** A limit above the number of rows that concern the person in any of these tables. */
const MANY = 20;

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Parent Relationship'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Plan[];
}

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

describe('the plans of statements that decide a reach', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let world: ReachWorld;
  let person: Person;
  /** A person whom no group of hosts admits. */
  let outsider: Person;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 3);
    const run = (statement: string, parameters: unknown[] = []) =>
      dataSource.query(statement, parameters);
    await run(`INSERT INTO deployment (composition) VALUES ('test')`);
    world = await ReachWorld.found(dataSource);
    const people: Person[] = [];
    while (people.length < PEOPLE) people.push(...(await world.people(CHUNK)));
    [person] = people as [Person];
    const all = await makeGroupRow(
      dataSource,
      world.orgId,
      'everybody',
      people.map(({ id }) => id),
    );
    // Inserts many groups without members, and for each group a role that is assigned to this group
    // alone.
    await run(
      `INSERT INTO groups (id, org_id, display_name) SELECT gen_random_uuid(), $1, 'group ' || n FROM generate_series(1, $2::int) n`,
      [world.orgId, GROUPS],
    );
    await run(
      `INSERT INTO access_targets (org_id, kind, role_arn, name, access)
       SELECT $1, 'aws_role', 'arn:aws:iam::123456789012:role/' || display_name, 'role', 'assigned' FROM groups`,
      [world.orgId],
    );
    await run(
      `INSERT INTO access_assignments (target_id, group_id) SELECT t.id, g.id FROM groups g JOIN access_targets t ON t.role_arn = 'arn:aws:iam::123456789012:role/' || g.display_name`,
    );
    // The owner of the application has a key, and the organization allows tokens for all
    // repositories.
    await run(
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       SELECT owner_id, owner_id, uuid_send(owner_id), 'pem', 0, 'packed', true, 'key' FROM oauth_clients WHERE id = $1`,
      [world.clientId],
    );
    await run('UPDATE organizations SET github_all_repositories = true WHERE id = $1', [
      world.orgId,
    ]);
    const role = await makeRole(dataSource, world.orgId, ROLE, { access: 'assigned' });
    for (const target of [role, ...Object.values(world.targets)]) {
      await assign(dataSource, target, { groupId: all });
      await run(
        'INSERT INTO access_assignments (target_id, user_id) SELECT $1, id FROM users WHERE id <> $2 LIMIT 1000',
        [target, person.id],
      );
      await setRule(dataSource, target, { access: 'assigned' });
    }
    // Other organizations, each with a group of hosts that admits everyone.
    await run(
      `WITH made AS (INSERT INTO organizations (id, name) SELECT gen_random_uuid(), 'other ' || n FROM generate_series(1, 100) n RETURNING id)
       INSERT INTO access_targets (org_id, kind, name, hosts, logins) SELECT id, 'host_group', 'open', '{*.example}', '{ops}' FROM made`,
    );
    outsider = await world.person();
    await run(
      `INSERT INTO group_members (group_id, user_id) SELECT id, $1 FROM groups WHERE display_name = 'group 1'`,
      [outsider.id],
    );
  }, 900_000);
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  /**
   * Returns for each table the most rows that one node of the plan reads, those that a filter drops
   * included.
   */
  function rowsRead(plan: Plan): Record<string, number> {
    const read: Record<string, number> = {};
    const visit = (node: Plan): void => {
      const table = node['Relation Name'];
      if (table !== undefined) {
        const removed =
          (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
        const rowsOfNode = (node['Actual Rows'] + removed) * node['Actual Loops'];
        read[table] = Math.max(read[table] ?? 0, Math.round(rowsOfNode));
      }
      node.Plans?.forEach(visit);
    };
    visit(plan);
    return read;
  }

  /**
   * Records the statements of an action, and runs each again by EXPLAIN ANALYZE with a generic
   * plan. Returns the most rows that one of them reads of each table. All is rolled back.
   */
  async function explained(
    act: (tx: EntityManager) => Promise<unknown>,
  ): Promise<Record<string, number>> {
    const sent = await statementsOf(act);
    const read: Record<string, number> = {};
    for (const { text, values } of sent) {
      const name = `p${randomUUID().replaceAll('-', '')}`;
      const args = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`;
      const counts = await rolledBack(async (tx) => {
        await tx.query('SET LOCAL plan_cache_mode = force_generic_plan');
        await tx.query(`PREPARE ${name} AS ${text}`);
        const before = await rowsCounted(tx);
        const [row] = (await tx.query(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE ${name}${args}`)) as {
          'QUERY PLAN': { Plan: Plan }[];
        }[];
        const counted = Object.entries(await rowsCounted(tx)).map(
          ([table, n]) => [table, n - (before[table] ?? 0)] as const,
        );
        return [
          rowsRead(row?.['QUERY PLAN'][0]?.Plan as Plan),
          Object.fromEntries<number>(counted),
        ];
      });
      for (const [table, n] of counts.flatMap(Object.entries<number>)) {
        read[table] = Math.max(read[table] ?? 0, n);
      }
    }
    return read;
  }

  /**
   * Returns how many rows of the tables the transaction has read so far. The counters include reads
   * in the functions of a statement, which its plan does not show.
   */
  async function rowsCounted(tx: EntityManager): Promise<Record<string, number>> {
    const counted = (await tx.query(
      `SELECT t.relname, t.seq_tup_read + (
         SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(i.indexrelid)), 0) FROM pg_index i WHERE i.indrelid = t.relid)::bigint AS n
       FROM pg_stat_xact_user_tables t WHERE t.relname = ANY ($1)`,
      [[...RULES]],
    )) as { relname: string; n: string }[];
    return Object.fromEntries(counted.map(({ relname, n }) => [relname, Number(n)]));
  }

  async function statementsOf(act: (tx: EntityManager) => Promise<unknown>): Promise<Statement[]> {
    return rolledBack(async (tx) => {
      const query = vi.spyOn(Client.prototype, 'query');
      try {
        await act(tx);
        return query.mock.calls.flatMap(([first, second]): Statement[] => {
          const sent = first as unknown as string | { text: string; values?: unknown[] };
          const text = typeof sent === 'string' ? sent : sent.text;
          const own = typeof sent === 'string' ? undefined : sent.values;
          const values = own ?? second ?? [];
          return /^\s*(WITH|SELECT|DELETE|UPDATE)/.test(text) ? [{ text, values }] : [];
        });
      } finally {
        query.mockRestore();
      }
    });
  }

  async function rolledBack<Result>(work: (tx: EntityManager) => Promise<Result>): Promise<Result> {
    const runner = dataSource.createQueryRunner();
    try {
      await runner.startTransaction();
      return await work(runner.manager);
    } finally {
      await runner.rollbackTransaction();
      await runner.release();
    }
  }

  /**
   * Returns the tables whose rows the statements of an action lock, in the order of the plan. The
   * queue of endings is left out: conditions read it, and PostgreSQL may plan a condition as a join
   * below the locks.
   */
  async function lockedBy(act: (tx: EntityManager) => Promise<unknown>): Promise<string[]> {
    const tables: string[] = [];
    const visit = (node: Plan, isLocked: boolean): void => {
      const table = node['Relation Name'];
      if (isLocked && table !== undefined && table !== 'access_endings') tables.push(table);
      for (const child of node.Plans ?? []) {
        const isPart = child['Parent Relationship'] !== 'SubPlan';
        visit(child, isPart && (isLocked || node['Node Type'] === 'LockRows'));
      }
    };
    for (const { text, values } of await statementsOf(act)) {
      visit(await planOf(text, values), false);
    }
    return tables;
  }

  /** Returns the generic plan of a statement by EXPLAIN, which does not run the statement. */
  async function planOf(text: string, values: readonly unknown[]): Promise<Plan> {
    const name = `p${randomUUID().replaceAll('-', '')}`;
    const args = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`;
    return rolledBack(async (tx) => {
      await tx.query('SET LOCAL plan_cache_mode = force_generic_plan');
      await tx.query(`PREPARE ${name} AS ${text}`);
      const [row] = (await tx.query(`EXPLAIN (FORMAT JSON) EXECUTE ${name}${args}`)) as {
        'QUERY PLAN': { Plan: Plan }[];
      }[];
      return row?.['QUERY PLAN'][0]?.Plan as Plan;
    });
  }

  async function grantOf(clientId: string): Promise<Buffer> {
    const [grant] = await rows<{ id: Buffer }>(
      dataSource,
      'SELECT id FROM oauth_grants WHERE user_id = $1 AND client_id = $2',
      [person.id, clientId],
    );
    if (!grant) throw new Error('the person has no such grant');
    return grant.id;
  }

  const grant = (parentId?: Buffer) => ({
    id: randomBytes(32),
    clientId: world.clientId,
    userId: person.id,
    sessionId: person.sessionId,
    payload: {},
    expiresIn: 600,
    ...(parentId && { parentId }),
  });

  /** Returns a request for a token, which is of the user if there is a grant. */
  const token = (clientId: string, grantId: Buffer | null) => ({
    token: {
      model: grantId ? 'AccessToken' : 'ClientCredentials',
      id: randomBytes(32),
      payload: {},
      grantId,
      clientId,
      userId: grantId && person.id,
      userCode: null,
      expiresIn: 300,
    },
    audit: { auditId: randomUUID(), origin: ORIGIN, details: {} },
  });

  const gitHubToken = (repositories: readonly string[] | null) => ({
    id: randomUUID(),
    userId: person.id,
    orgId: world.orgId,
    sessionId: person.sessionId,
    installationId: world.installationId,
    owner: 'octo',
    sealed: 'sealed',
    expiresAt: new Date(Date.now() + 3_600_000),
    repositories,
    permissions: {},
    auditId: randomUUID(),
    origin: ORIGIN,
  });

  function certificate(of: Person = person): SshCertificateRequest {
    return {
      ...PLAIN_KEY,
      userId: of.id,
      sessionId: of.sessionId,
      email: of.email,
      keyId: 'key',
      keyFingerprint: 'SHA256:key',
      caFingerprint: 'SHA256:ca',
      attestationRequired: false,
      attestation: undefined,
      principalsDomain: undefined,
      groupPrincipals: undefined,
      host: undefined,
      ttlSeconds: undefined,
      mostOnRecord: undefined,
      auditId: randomUUID(),
      origin: ORIGIN,
    };
  }

  const KINDS: Readonly<Record<string, readonly [unknown, () => Promise<unknown>]>> = {
    'a grant': [GRANT, () => Promise.resolve(grant())],
    'a grant with a parent': [GRANT, async () => grant(await grantOf('svc-cli'))],
    'a token': [USER_TOKEN, async () => token(world.clientId, await grantOf(world.clientId))],
    'a token for a cluster': [
      CLUSTER_TOKEN,
      async () => ({
        ...token('svc-cli', await grantOf('svc-cli')),
        applicationId: world.clusterId,
      }),
    ],
    'a token of a client itself': [
      CLIENT_TOKEN,
      () => Promise.resolve(token(world.clientId, null)),
    ],
    'a certificate with groups of hosts': [
      certificateKindOf(PLAIN_KEY as unknown as SshCertificateRequest),
      () => Promise.resolve(certificate()),
    ],
    'a certificate without groups of hosts': [
      kindWithoutGroups(PLAIN_KEY as unknown as SshCertificateRequest),
      () => Promise.resolve({ ...certificate(outsider), ...ADDRESS }),
    ],
    'a token for AWS': [
      AWS_TOKEN,
      async () => ({
        userId: person.id,
        sessionId: person.sessionId,
        email: person.email,
        roleArn: ROLE,
        isReadOnly: false,
        tokenId: randomUUID(),
        sourceIdentity: 'person',
        lifetime: 300,
        auditId: randomUUID(),
        origin: ORIGIN,
      }),
    ],
    'a token for GitHub': [GITHUB_TOKEN, () => Promise.resolve(gitHubToken(['hello']))],
    'a token for all repositories of GitHub': [
      GITHUB_TOKEN,
      () => Promise.resolve(gitHubToken(null)),
    ],
  };

  const OF_GRANT = ['users', 'oauth_clients', 'sessions', 'oauth_grants', 'access_versions'];
  const OF_INSTALLATION = [
    'users',
    'sessions',
    'github_installations',
    'organizations',
    'access_versions',
  ];
  /**
   * The tables whose rows the statement for each kind of credential locks. The order is the same
   * for all kinds, so that no two of them deadlock.
   */
  const LOCKED: Readonly<Record<keyof typeof KINDS, readonly string[]>> = {
    'a grant': OF_GRANT,
    'a grant with a parent': OF_GRANT,
    'a token': OF_GRANT,
    // The client, and then the cluster.
    'a token for a cluster': [
      'users',
      'oauth_clients',
      'oauth_clients',
      'sessions',
      'oauth_grants',
      'access_versions',
    ],
    'a token of a client itself': ['users', 'oauth_clients', 'authenticators'],
    'a certificate with groups of hosts': ['users', 'sessions', 'access_versions'],
    'a certificate without groups of hosts': ['users', 'sessions'],
    'a token for AWS': ['users', 'sessions', 'access_versions'],
    'a token for GitHub': OF_INSTALLATION,
    'a token for all repositories of GitHub': OF_INSTALLATION,
  };

  const ENDINGS: Readonly<Record<string, readonly [ReachEnding, () => Partial<Ending>]>> = {
    'a grant and a token': [
      GRANT_ENDING,
      () => ({ targetId: world.targets.application, clientId: world.clientId }),
    ],
    'a token for a cluster': [
      GRANT_ENDING,
      () => ({ targetId: world.targets.cluster, clientId: world.clusterId, place: 'tokens:' }),
    ],
    'a certificate': [CERTIFICATE_ENDING, () => ({ targetId: world.targets.hosts })],
    'a token for GitHub': [
      new GitHubReachEnding({ wakeAfter: () => {} }),
      () => ({
        targetId: world.targets.installation,
        installationId: String(world.installationId),
      }),
    ],
  };

  const STATISTICS: readonly [string, () => Promise<unknown>][] = [
    ['never analyzed', () => Promise.resolve()],
    ['analyzed', () => dataSource.query('ANALYZE')],
  ];

  describe.each(STATISTICS)('while the tables are %s', (_, prepare) => {
    beforeAll(async () => {
      await prepare();
    });

    it.each(Object.keys(KINDS))('locks the rows of %s in the one order', async (name) => {
      const [kind, request] = KINDS[name] as (typeof KINDS)[string];
      const asked = await request();
      const issuing = kind as IssuanceKind<unknown, unknown>;
      expect(await lockedBy((tx) => issuing.issue(tx, asked))).toEqual(LOCKED[name]);
      // The statement of a batch does not wait for a lock, and also has this order.
      expect(await lockedBy((tx) => issuing.issueUnlocked(tx, [asked]))).toEqual(LOCKED[name]);
    });

    it.each(Object.keys(KINDS))('reads a few rows of the rules for %s', async (name) => {
      const [kind, request] = KINDS[name] as (typeof KINDS)[string];
      const asked = await request();
      const issuing = kind as IssuanceKind<unknown, unknown>;
      const read = await explained(async (tx) => {
        expect(await issuing.issue(tx, asked)).toHaveProperty('issued');
      });
      expect(manyOf(read)).toEqual({});
    });

    it('reads no groups of other organizations for a certificate without groups of hosts', async () => {
      const kind = kindWithoutGroups(PLAIN_KEY as unknown as SshCertificateRequest);
      const read = await explained(async (tx) => {
        const asked = { ...certificate(outsider), ...ADDRESS };
        expect(await kind?.issue(tx, asked)).toHaveProperty('issued');
      });
      expect(read['access_targets']).toBeLessThan(MANY);
    });

    it.each(Object.keys(ENDINGS))(
      'reads a few rows of the rules to end %s of one person',
      async (name) => {
        const [kind, of] = ENDINGS[name] as (typeof ENDINGS)[string];
        const ending = {
          id: '1',
          orgId: world.orgId,
          clientId: null,
          installationId: null,
          rule: 'membership',
          place: '',
          actorId: null,
          scimTokenId: null,
          requestId: null,
          targetName: 'x',
          userIds: [person.id],
          ...of(),
        } as unknown as Ending;
        const read = await explained((tx) => kind.endBatch(tx, ending, 500));
        expect(manyOf(read)).toEqual({});
      },
    );
  });
});

/** Returns the tables of {@link RULES} of which more than {@link MANY} rows were read. */
function manyOf(read: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(read).filter(([table, n]) => RULES.has(table) && n > MANY),
  );
}
