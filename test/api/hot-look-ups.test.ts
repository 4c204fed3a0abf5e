import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer } from '../support/client.js';
import { orgApi } from '../support/org-api.js';
import { rows } from '../support/rows.js';
import { atScale } from '../support/scale.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { insertUsers, withQuery } from '../support/scim-requests.js';

const USERS = 3000;

/**
 * The number of steps in the history of one user. Only the first 500 and the last 500 steps have an
 * event about an AWS credential.
 */
const HISTORY = atScale({ small: 3_000, full: 10_000 });
const DOMAIN = 'hot.example';

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly Filter?: string;
  readonly 'Parent Relationship'?: string;
  readonly 'Subplan Name'?: string;
  readonly Plans?: readonly Plan[];
}

let app: TestApp;
let organization: ScimOrganization;
let userId: string;
let groupId: string;
beforeAll(async () => {
  app = await startTestApp();
  organization = await foundOrganization(app, DOMAIN);
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    `SELECT org_id FROM users WHERE email = 'admin@${DOMAIN}'`,
  );
  const orgId = row?.org_id ?? '';
  const [first = ''] = await insertUsers(app, { orgId, domain: DOMAIN } as never, USERS);
  userId = first;
  groupId = randomUUID();
  await rows(
    app.dataSource,
    `INSERT INTO groups (id, org_id, display_name)
     SELECT gen_random_uuid(), $1::uuid, 'Group ' || n FROM generate_series(1, 3000) n
     UNION ALL SELECT $2::uuid, $1::uuid, 'Hot'`,
    [orgId, groupId],
  );
  await rows(
    app.dataSource,
    `INSERT INTO audit_events (id, type, class, org_id, actor_id, subject_id, details)
     SELECT gen_random_uuid(), 'logout', 'auth', $1::uuid, id, id, jsonb_build_object('email', email)
     FROM users WHERE org_id = $1::uuid`,
    [orgId],
  );
  for (const table of ['users', 'groups', 'audit_events']) {
    await rows(app.dataSource, `ANALYZE ${table}`);
  }
});
afterAll(() => app.close());

/** Returns the statements, with their values, that a request sends and that read from a table. */
async function statementsOf(ask: () => Promise<Answer>, table: string): Promise<Statement[]> {
  const query = vi.spyOn(Client.prototype, 'query');
  try {
    expect((await ask()).status).toBe(200);
    return query.mock.calls.flatMap(([first, second]): Statement[] => {
      const sent: unknown = first;
      const text = typeof sent === 'string' ? sent : (sent as Statement | undefined)?.text;
      const isOf = text?.includes(`FROM ${table} `) && !text.includes('INSERT INTO');
      return isOf ? [{ text: text ?? '', values: second ?? [] }] : [];
    });
  } finally {
    query.mockRestore();
  }
}

/**
 * Returns PostgreSQL's plan of a statement after `lie`, an SQL statement that changes the
 * statistics. All is rolled back.
 */
async function planOf({ text, values }: Statement, lie: string): Promise<Plan> {
  const runner = app.dataSource.createQueryRunner();
  await runner.startTransaction();
  try {
    if (lie !== '') await runner.query(lie);
    await runner.query('SET LOCAL enable_seqscan = on');
    const [row] = (await runner.query(`EXPLAIN (FORMAT JSON) ${text}`, [...values])) as {
      'QUERY PLAN': { Plan: Plan }[];
    }[];
    const plan = row?.['QUERY PLAN'][0]?.Plan;
    if (!plan) throw new Error('PostgreSQL explains nothing');
    return plan;
  } finally {
    await runner.rollbackTransaction();
    await runner.release();
  }
}

const OF_OURS = `starelid IN ('users'::regclass, 'groups'::regclass, 'audit_events'::regclass,
  'users_user_name'::regclass, 'users_user_name_key'::regclass, 'groups_display_name'::regclass,
  'groups_display_name_key'::regclass)`;

/** The states of the planner's statistics: a name, and the SQL that makes each. */
const LIES: readonly [string, string][] = [
  ['true', ''],
  ['missing', `DELETE FROM pg_statistic WHERE ${OF_OURS}`],
  [
    'wrong, so that every value seems to be everywhere',
    `UPDATE pg_statistic SET stadistinct = 1, stakind1 = 0, stakind2 = 0, stakind3 = 0, stakind4 = 0, stakind5 = 0
     WHERE ${OF_OURS}`,
  ],
  [
    'of a table that seemed enormous',
    `UPDATE pg_class SET reltuples = 1e8 WHERE oid IN ('users'::regclass, 'groups'::regclass)`,
  ],
  [
    'of a table that was all but empty',
    `UPDATE pg_class SET reltuples = 1, relpages = 1 WHERE oid IN ('users'::regclass, 'groups'::regclass)`,
  ],
];

/** Returns the nodes of a plan, without those of subqueries in the select list. */
function mainNodes(plan: Plan): Plan[] {
  const inner = (plan.Plans ?? []).filter(
    (each) => each['Parent Relationship'] !== 'SubPlan' || each['Subplan Name'] === undefined,
  );
  return [plan, ...inner.flatMap(mainNodes)];
}

const scim = (path: string) => () => organization.scim('GET', path);
const filtered = (type: string, filter: string) => scim(withQuery(`/${type}`, { filter }));

describe.each(LIES)('while the statistics are %s', (_, lie) => {
  it.each<[string, string, string, () => Promise<Answer>]>([
    ['userName', 'users', 'users_user_name(_key)?', filtered('Users', `userName eq "x@${DOMAIN}"`)],
    [
      'the id of a user',
      'users',
      'users_(pkey|org)',
      () => filtered('Users', `id eq "${userId}"`)(),
    ],
    ['the path of a user', 'users', 'users_(pkey|org)', () => scim(`/Users/${userId}`)()],
    [
      'displayName',
      'groups',
      'groups_display_name(_key)?',
      filtered('Groups', 'displayName eq "Hot"'),
    ],
    [
      'the id of a group',
      'groups',
      'groups_(pkey|org)',
      () => filtered('Groups', `id eq "${groupId}"`)(),
    ],
  ])('10.18 a look-up by %s reads one row of its unique index', async (_key, table, index, ask) => {
    const statements = await statementsOf(ask, table);
    expect(statements).toHaveLength(1);
    const plan = await planOf(statements[0] as Statement, lie);
    expect(plan['Node Type']).toBe('Index Scan');
    expect(plan['Index Name']).toMatch(new RegExp(`^${index}$`));
    const nodes = mainNodes(plan).map((node) => node['Node Type']);
    expect(nodes.filter((node) => /Sort|Limit|Seq Scan/.test(node))).toEqual([]);
    expect(statements[0]?.text.replaceAll(/json_agg\([^]*?\)::text/g, '')).not.toMatch(
      /ORDER BY|LIMIT|OFFSET/,
    );
  });

  it.each<[string, string, string, () => Promise<Answer>]>([
    ['a page of users', 'users', 'users_org', () => scim('/Users?count=1')()],
    ['a page of members', 'users', 'users_org', () => orgApi(admin(), 'GET', '/members?limit=1')],
    ['the newest events', 'audit_events', 'audit_log_of_org', events('limit=1')],
  ])('10.18 %s is read in the order of one index', async (_page, table, index, ask) => {
    const [statement] = await statementsOf(ask, table);
    const nodes = mainNodes(await planOf(statement as Statement, lie));
    const names = nodes.map((node) => node['Index Name']);
    expect([...names, ...(await auditIndexes(nodes))]).toContain(index);
    expect(nodes.map((node) => node['Node Type'])).not.toContain('Seq Scan');
  });
});

it('10.18 such statistics mislead a look-up that has an order and a limit', async () => {
  const [, lie = ''] = LIES[3] ?? [];
  const [user] = await rows<{ org_id: string }>(
    app.dataSource,
    'SELECT org_id FROM users WHERE id = $1',
    [userId],
  );
  const text = `SELECT u.id FROM users u
    WHERE u.org_id = $1 AND lower(coalesce(u.user_name, u.email, u.id::text) COLLATE "C") = $2
    ORDER BY u.id LIMIT 101`;
  const nodes = mainNodes(await planOf({ text, values: [user?.org_id, 'x'] }, lie));
  const names = nodes.flatMap((node) => node['Index Name'] ?? []);
  expect(names.filter((name) => name.startsWith('users_user_name'))).toEqual([]);
});

/**
 * Returns the names of the audit log's indexes that a plan reads. The index of a partition counts
 * as that of the whole table.
 */
async function auditIndexes(nodes: readonly Plan[]): Promise<string[]> {
  const names = nodes.flatMap((node) => node['Index Name'] ?? []);
  const found = await rows<{ name: string }>(
    app.dataSource,
    `SELECT DISTINCT a.relid::regclass::text AS name FROM unnest($1::text[]) n (name), pg_partition_ancestors(n.name::regclass) a
     WHERE a.relid::regclass::text ^@ 'audit_log_' ORDER BY 1`,
    [names.filter((name) => name.startsWith('audit'))],
  );
  return found.map(({ name }) => name);
}

const admin = () => organization.admin.client;
function events(query: string): () => Promise<Answer> {
  return () => orgApi(admin(), 'GET', `/audit-events?${query}`);
}

describe('an audit search', () => {
  it.each<[string, string, readonly string[]]>([
    ['a type', 'type=enrollment', ['audit_log_of_type']],
    // `audit_log_of_org` gives the day of the organization's first event. The days before it are
    // not searched.
    ['a request', 'request=none', ['audit_log_of_org', 'audit_log_of_request_day']],
    ['a user', `user=${randomUUID()}`, ['audit_log_of_actor', 'audit_log_of_subject']],
    [
      'an address',
      `email=nobody@${DOMAIN}`,
      [
        'audit_log_of_actor',
        'audit_log_of_actor_email',
        'audit_log_of_email',
        'audit_log_of_subject',
        'audit_log_of_subject_email',
      ],
    ],
  ])(
    '10.2 for %s reads its indexes, and no event that it does not show',
    async (_, query, indexes) => {
      const [statement] = await statementsOf(events(query), 'audit_events');
      const nodes = mainNodes(await planOf(statement as Statement, ''));
      expect(await auditIndexes(nodes)).toEqual(indexes);
      const conditions = nodes.map((node) => node['Index Cond'] ?? '').join(' ');
      expect(conditions).toMatch(/(?:type|request_id), .*\) =|_id =|email =|'email'::text\) =/);
    },
  );

  it('10.2 resolves an address to its current user, and finds events that name it', async () => {
    const address = `admin@${DOMAIN}`;
    const { status, json } = await events(`email=${address}&limit=1000`)();
    expect(status).toBe(200);
    const found = json.events as { id: string; details: { email?: string } }[];
    expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
    const expected = await rows<{ id: string }>(
      app.dataSource,
      `SELECT e.id FROM audit_events e JOIN users u ON u.org_id = e.org_id AND u.email = $1
       WHERE u.id IN (e.actor_id, e.subject_id) OR e.details ->> 'email' = $1
       ORDER BY e.created_at DESC, e.id DESC`,
      [address],
    );
    expect(found.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
    expect(expected.length).toBeGreaterThan(2);
  });
});

describe('the credentials that were issued to a user', () => {
  const ofAdmin = `(SELECT id FROM users WHERE email = 'admin@${DOMAIN}')`;
  const list = (query: string) => () =>
    admin().get(`/v1/account/credentials?${query}`, { address: newAddress() });

  beforeAll(async () => {
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, actor_id, subject_id, details, created_at)
       SELECT gen_random_uuid(), e.type, e.class, u.id, u.id, e.details::jsonb, now() - make_interval(secs => n)
       FROM generate_series(1, ${HISTORY}) n, ${ofAdmin} u (id), LATERAL (
         SELECT 'logout', 'auth', '{}' WHERE n BETWEEN 501 AND ${HISTORY - 500}
         UNION ALL SELECT 'oauth_token_issued', 'oauth', '{"grant_type": "token_exchange"}' WHERE n BETWEEN 501 AND ${HISTORY - 500}
         UNION ALL SELECT 'aws_credential', 'oauth', '{}' WHERE n <= 500 OR n > ${HISTORY - 500}) e (type, class, details)`,
    );
    await rows(app.dataSource, 'ANALYZE audit_events');
  });

  it.each(['limit=20', 'limit=5'])(
    '?%s: a page reads them alone, however long the history is',
    async (query) => {
      const first = await list(query)();
      const after = first.json.next as string;
      for (const page of [query, `${query}&after=${after}`]) {
        const [statement] = await statementsOf(list(page), 'audit_events');
        const nodes = mainNodes(await planOf(statement as Statement, ''));
        const read = nodes.filter(({ 'Index Name': name }) => name?.startsWith('audit'));
        expect(await auditIndexes(nodes)).toEqual(['audit_log_of_subject']);
        const filters = new Set(read.map((node) => node.Filter));
        expect([...filters]).toEqual(["(class = 'oauth'::text)"]);
        expect(nodes.map((node) => node['Node Type']).join(' ')).not.toMatch(
          /(?<!Incremental )Sort|Hash|Bitmap/,
        );
      }
    },
  );

  it('are all on the pages, the oldest behind the long part without one', async () => {
    let [found, after] = [0, ''];
    do {
      const { credentials, next } = (await list(`limit=200${after}`)()).json;
      found += credentials.length as number;
      after = next === null ? '' : `&after=${next}`;
    } while (after !== '');
    expect(found).toBe(1000);
  });
});

it('the look-up of a session has a plan that does not depend on the number of hashes', async () => {
  const ask = () => admin().get('/v1/account/credentials?limit=1', { address: newAddress() });
  const found = await statementsOf(ask, 'known');
  const text = found.find((one) => one.text.includes('token_hash AS presented'))?.text ?? '';
  const hashes = [...new Set(text.match(/\$\d+/g))].map(() => `ARRAY['\\x00']::bytea[]`);
  const runner = app.dataSource.createQueryRunner();
  await runner.startTransaction();
  try {
    await runner.query(`PREPARE look_up AS ${text}`);
    const costs: unknown[] = [];
    // PostgreSQL keeps the generic plan only if a custom plan is not cheaper. With equal costs it
    // plans once.
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await runner.query(`SET LOCAL plan_cache_mode = ${mode}`);
      const [row] = await runner.query(
        `EXPLAIN (FORMAT JSON) EXECUTE look_up (${hashes.join(', ')})`,
      );
      costs.push(row['QUERY PLAN'][0].Plan['Total Cost']);
    }
    expect(costs[0]).toBeGreaterThan(0);
    expect(costs[1]).toBe(costs[0]);
    await runner.query('DEALLOCATE look_up');
  } finally {
    await runner.rollbackTransaction();
    await runner.release();
  }
});
