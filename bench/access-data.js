import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { organizationRows } from './pages-data.js';

export const PEOPLE = 100_000;
export const TARGETS = {
  application: 300,
  aws_role: 390,
  host_group: 300,
  github_installation: 10,
};
/**
 * The number of groups of hosts that admit the group with all people. An SSH certificate for one of
 * these people then has a principal of each of these groups. The environment variable
 * BENCH_HOST_GROUPS sets another number.
 */
const OWN_HOST_GROUPS = Number(process.env.BENCH_HOST_GROUPS ?? 1);
const DOMAIN = 'access.bench.example';
/** The id of an application, and the ARN of a role of AWS, that admit the group with all people. */
export const APPLICATION = 'access-0';
export const ROLE = 'arn:aws:iam::123456789012:role/role-0';

const ORG = '01900000-0000-7000-b000-000000000000';
const ALL = '01900000-0000-7000-b003-000000000000';
const OTHERS = '01900000-0000-7000-b003-000000000001';
const ADMIN = '01900000-0000-7000-b001-000000000000';

/** Returns the id of the n-th person of the large organization. */
export const personId = (n) => `01900000-0000-7000-b002-${n.toString(16).padStart(12, '0')}`;
const PERSON = `('01900000-0000-7000-b002-' || lpad(to_hex(n), 12, '0'))::uuid`;

/**
 * Returns the statements that add 100,000 people to an organization, all of them members of one
 * group. A second group has ten of them.
 * @param org the id of the organization
 */
const fillPeople = (org) => `
INSERT INTO users (id, org_id, email, name, scim_managed, user_name)
  SELECT ${PERSON}, '${org}', 'user-' || n || '@${DOMAIN}', 'Given' || n || ' Family', true, 'user-' || n || '@${DOMAIN}'
  FROM generate_series(0, ${PEOPLE - 1}) n;
INSERT INTO groups (id, org_id, display_name) VALUES ('${ALL}', '${org}', 'All people'), ('${OTHERS}', '${org}', 'Others');
INSERT INTO group_members (group_id, user_id) SELECT '${ALL}', id FROM users WHERE org_id = '${org}' ORDER BY id;
INSERT INTO group_members (group_id, user_id) SELECT '${OTHERS}', ${PERSON} FROM generate_series(0, 9) n`;

/**
 * Returns the statements that make 1,000 targets: applications, roles of AWS, groups of hosts and
 * GitHub installations. Most groups of hosts do not admit the group of all people. Otherwise a
 * certificate would need more than the 256 principals that OpenSSH allows.
 * @param org the id of the organization
 */
const fillTargets = (org) => `
INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
  SELECT 'access-' || n, 'application', jsonb_build_object('client_name', 'Application ' || n, 'redirect_uris', jsonb_build_array('https://app.example/cb')),
         (SELECT id FROM users WHERE org_id = '${org}' ORDER BY id LIMIT 1), '${org}'
  FROM generate_series(0, ${TARGETS.application - 1}) n;
INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, changed_at, linked_by)
  SELECT 700000 + n, '${org}', 700000 + n, 'owner-' || n, 'all', now(), '${ADMIN}' FROM generate_series(0, ${TARGETS.github_installation - 1}) n;
INSERT INTO access_targets (org_id, kind, role_arn, name)
  SELECT '${org}', 'aws_role', 'arn:aws:iam::123456789012:role/role-' || n, 'Role ' || n FROM generate_series(0, ${TARGETS.aws_role - 1}) n;
INSERT INTO access_targets (org_id, kind, name, hosts, logins)
  SELECT '${org}', 'host_group', 'hosts-' || n, ARRAY['*.h' || n || '.example'], '{deploy}' FROM generate_series(0, ${TARGETS.host_group - 1}) n;
UPDATE access_targets SET access = 'assigned' WHERE org_id = '${org}';
INSERT INTO access_assignments (target_id, group_id)
  SELECT id, CASE WHEN kind = 'host_group' AND substr(name, 7)::int >= ${OWN_HOST_GROUPS} THEN '${OTHERS}' ELSE '${ALL}' END::uuid
  FROM access_targets WHERE org_id = '${org}'`;

const ANALYZE = ['users', 'groups', 'group_members', 'oauth_clients'];
const ANALYZE_TARGETS = ['access_targets', 'access_assignments'];

/**
 * Gives the organization of the bench's logged-in people 100,000 more people, a group of all of
 * them and 1,000 targets that admit that group. An older release, which has no table of targets,
 * gets only the people and the group.
 *
 * @returns true if the release has targets
 */
export async function fillOwnReach(database) {
  return withClient(database, async (client) => {
    const [{ org_id: org }] = (await client.query('SELECT org_id FROM users LIMIT 1')).rows;
    return fillReach(client, org);
  });
}

/**
 * Makes another organization with 100,000 people, a group of all of them and 1,000 targets.
 *
 * @returns the token of the session of its admin
 */
export async function fillOtherReach(database) {
  const token = randomBytes(32).toString('base64url');
  const hash = createHash('sha256').update(token).digest('hex');
  await withClient(database, async (client) => {
    const rows = organizationRows({ org: ORG, admin: ADMIN, domain: DOMAIN, hash });
    for (const statement of rows) {
      await client.query(statement);
    }
    await fillReach(client, ORG);
  });
  return token;
}

async function fillReach(client, org) {
  await client.query('SET statement_timeout = 0; SET synchronous_commit = off');
  const { rows } = await client.query(`SELECT to_regclass('access_targets') IS NOT NULL AS there`);
  const hasTargets = rows[0].there;
  const statements = [fillPeople(org), ...(hasTargets ? [fillTargets(org)] : [])].join(';');
  for (const statement of statements.split(';')) await client.query(statement);
  for (const table of [...ANALYZE, ...(hasTargets ? ANALYZE_TARGETS : [])]) {
    await client.query(`VACUUM ANALYZE ${table}`);
  }
  if (hasTargets) await endingsAreDone(client);
  await client.query('CHECKPOINT');
  return hasTargets;
}

/**
 * Waits until the service has ended the access that the new rules took away, so that this work does
 * not slow down the measurement. Throws after five minutes.
 */
async function endingsAreDone(client) {
  for (let tries = 0; tries < 3000; tries += 1) {
    const { rows } = await client.query('SELECT EXISTS (SELECT FROM access_endings) AS remain');
    if (!rows[0].remain) return;
    await delay(100);
  }
  throw new Error('the service did not end the access that the new rules took away');
}

/**
 * Connects to the database of a running server, and calls a function with the connection.
 * @returns the result of the function
 */
export async function withClient(database, act) {
  const client = new Client(database);
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}
