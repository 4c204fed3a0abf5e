import { createHash, randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { userId } from './scim-data.js';
import { sealAll } from './sealing.js';

const ORG = '01900000-0000-7000-9000-000000000000';
export const DOMAIN = 'million.bench.example';
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

/** Returns how many rows of each kind the benchmark makes for a number of users. */
export function sizesOf(users) {
  return {
    users,
    groups: Math.floor(users / 20),
    memberships: 6 * users,
    certificates: 5 * users,
    events: 20 * users,
  };
}

/**
 * The number of users who are removed while the removal is measured. Only their certificates are
 * still valid: those of all other users have expired or are revoked. Their ids are greater than
 * those of all other users.
 */
export const LEAVERS = 200;
const REVOKED = 1000;

const idOf = (kind, n) => `('01900000-0000-7000-${kind}-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const user = (n) => idOf('8000', n);
const group = (n) => idOf('8001', n);
const GROWING = ['users', 'groups', 'group_members', 'ssh_certificates', 'audit_events'];

/**
 * Returns the statements that add the rows by which the data grow from one size to another. Group 0
 * has every user, group 1 has ten, and the other groups share the remaining memberships.
 */
function fillOf(from, to) {
  const series = (kind) => `generate_series(${from[kind]}, ${to[kind] - 1}) n`;
  const shared = (size) => Math.max(0, size.memberships - size.users - 10);
  return [
    `INSERT INTO users (id, org_id, email, name, scim_managed, user_name, external_id, attributes)
       SELECT ${user('n')}, '${ORG}', 'user-' || n || '@${DOMAIN}', 'Given' || n || ' Family', true,
              'user-' || n || '@${DOMAIN}', 'external-' || n, jsonb_build_object(
         'displayName', 'Given' || n || ' Family', 'title', 'Engineer',
         'name', jsonb_build_object('givenName', 'Given' || n, 'familyName', 'Family'),
         'emails', jsonb_build_array(jsonb_build_object('value', 'user-' || n || '@${DOMAIN}', 'type', 'work', 'primary', true)),
         '${ENTERPRISE}', jsonb_build_object('employeeNumber', n::text, 'department', 'Research'))
       FROM ${series('users')}`,
    `INSERT INTO groups (id, org_id, display_name, external_id)
       SELECT ${group('n')}, '${ORG}', 'Group ' || n, 'group-' || n FROM ${series('groups')}`,
    `INSERT INTO group_members (group_id, user_id) SELECT ${group('0')}, ${user('n')} FROM ${series('users')}`,
    from.users === 0
      ? `INSERT INTO group_members (group_id, user_id) SELECT ${group('1')}, ${user('n')} FROM generate_series(0, 9) n`
      : 'SELECT 1',
    // No membership is inserted twice: either its user or its group belongs to the rows that are
    // added.
    `INSERT INTO group_members (group_id, user_id)
       SELECT ${group('g')}, ${user('u')} FROM (
         SELECT 2 + k % ${to.groups - 2} AS g, ${from.users} + (k % ${to.groups - 2} * 37 + k / ${to.groups - 2} * 997) % ${to.users - from.users} AS u
         FROM generate_series(${shared(from)}, ${shared(to) - 1}) k) pairs
       ORDER BY g, u ON CONFLICT DO NOTHING`,
    `INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint,
                                   valid_after, valid_before)
       SELECT 1000000 + n, ${user(`n % ${to.users}`)}, '${ORG}', '${userId(0)}', 'bench', '{bench}', 'SHA256:bench', (SELECT fingerprint FROM ssh_authorities LIMIT 1),
              now() - interval '2 days', now() - interval '1 day'
       FROM ${series('certificates')}`,
    `INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, details, created_at)
       SELECT ${idOf('8002', 'n')}, CASE n % 3 WHEN 0 THEN 'scim_operation' WHEN 1 THEN 'login_success' ELSE 'ssh_credential' END,
              CASE n % 3 WHEN 0 THEN 'admin' WHEN 1 THEN 'auth' ELSE 'oauth' END,
              CASE n % 3 WHEN 0 THEN NULL ELSE ${user(`n % ${to.users}`)} END, ${user(`n % ${to.users}`)}, '${ORG}', 'bench',
              CASE n % 3 WHEN 0 THEN jsonb_build_object('operation', 'update', 'email', 'user-' || n % ${to.users} || '@${DOMAIN}')
                         ELSE jsonb_build_object('key_id', 'bench', 'n', n) END,
              now() - interval '1 day' + make_interval(secs => n / 1000.0)
       FROM ${series('events')}`,
  ];
}

/**
 * Returns the statements for the rows whose number does not grow: the organization, its admin, the
 * users who will leave, and the revoked serials.
 */
function fixedOf({ scimHash, adminHash }) {
  return [
    `INSERT INTO organizations (id, name, provisioned) VALUES ('${ORG}', '${DOMAIN}', true)`,
    `INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ('${ORG}', '${DOMAIN}', true, now())`,
    `INSERT INTO scim_tokens (id, org_id, hash, description, created_by, expires_at)
       VALUES (gen_random_uuid(), '${ORG}', '\\x${scimHash}', 'bench', gen_random_uuid(), now() + interval '1 day')`,
    `INSERT INTO users (id, org_id, email, is_org_admin) VALUES ('${ADMIN}', '${ORG}', 'admin@${DOMAIN}', true)`,
    `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       VALUES ('${ADMIN}', '${ADMIN}', sha256('admin'), 'none', 0, 'packed', true, 'admin')`,
    `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at)
       VALUES ('${ADMIN}', '\\x${adminHash}', 'verified', '${ADMIN}', '${ADMIN}', now(), now() + interval '1 day')`,
    `INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint,
                                   valid_after, valid_before, revoked_at, revoke_reason, revoked_by)
       SELECT n * 7, '${ADMIN}', '${ORG}', '${ADMIN}', 'bench', '{bench}', 'SHA256:bench', (SELECT fingerprint FROM ssh_authorities LIMIT 1), now(),
              now() + interval '1 day', now(), 'bench', 'bench'
       FROM generate_series(1, ${REVOKED}) n`,
  ];
}

const ADMIN = '01900000-0000-7000-8004-000000000000';
export const leaverId = (n) => `01900000-0000-7000-8005-${n.toString(16).padStart(12, '0')}`;

/**
 * Returns the statements that make the users who are removed later, while the removal is measured.
 * Each has 20 sessions and 50 valid certificates.
 */
function leaversOf() {
  const leaver = idOf('8005', 'n');
  const all = `generate_series(0, ${LEAVERS - 1}) n`;
  return [
    // An earlier measurement revoked certificates by removing people. Their certificates are
    // deleted, so that the list of revoked serials has the same length for each number of users
    // that is measured.
    `DELETE FROM ssh_certificates WHERE revoked_by = 'scim'`,
    `INSERT INTO users (id, org_id, email, scim_managed)
       SELECT ${leaver}, '${ORG}', 'leaver-' || n || '@${DOMAIN}', true FROM ${all} ON CONFLICT DO NOTHING`,
    `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       SELECT ${leaver}, ${leaver}, sha256(('leaver' || n)::bytea), 'none', 0, 'packed', true, 'leaver' FROM ${all}
       ON CONFLICT DO NOTHING`,
    `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at)
       SELECT gen_random_uuid(), sha256(gen_random_uuid()::text::bytea), 'verified', id, id, now(), now() + interval '1 day'
       FROM authenticators, generate_series(1, 20) WHERE name = 'leaver'`,
    `INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint,
                                   valid_after, valid_before)
       SELECT nextval('ssh_certificate_serial'), ${leaver}, '${ORG}', '${ADMIN}', 'bench', '{bench}', 'SHA256:bench',
              (SELECT fingerprint FROM ssh_authorities LIMIT 1), now(), now() + interval '1 day'
       FROM ${all}, generate_series(1, 50) c`,
  ];
}

/**
 * Fills the database of a running server, in steps from one size to the next. It uses a connection
 * of its own without time-outs.
 */
export class MillionData {
  #database;
  #size = sizesOf(0);

  constructor(database) {
    this.#database = database;
  }

  /**
   * Makes the organization and the rows whose number does not grow.
   * @returns `scim`, the SCIM token of the identity provider, and `admin`, the token of the admin's
   *   session
   */
  async begin() {
    const scim = `svc_scim_${randomBytes(32).toString('base64url')}`;
    const admin = randomBytes(32).toString('base64url');
    const hashOf = (text) => createHash('sha256').update(text).digest('hex');
    await this.#run(fixedOf({ scimHash: hashOf(scim), adminHash: hashOf(admin) }));
    return { scim, admin };
  }

  /**
   * Fills the tables up to a number of users, and seals the audit events. Otherwise the server
   * would seal them during the measurement. The indexes of the large tables are dropped first and
   * made again afterwards, which is faster.
   */
  async grow(users) {
    const to = sizesOf(users);
    await this.#run(
      [
        "SET maintenance_work_mem = '1GB'",
        'SET synchronous_commit = off',
        // Switches off the checks of foreign keys, so that filling is fast.
        'SET session_replication_role = replica',
      ],
      async (client) => {
        const { rows } = await client.query(
          `SELECT indexrelid::regclass AS name, pg_get_indexdef(indexrelid) AS text FROM pg_index i
           WHERE indrelid = ANY ($1::regclass[])
             AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
          [GROWING],
        );
        for (const { name } of rows) await client.query(`DROP INDEX ${name}`);
        for (const statement of fillOf(this.#size, to)) await client.query(statement);
        // Without ONLY, the index is made on every partition too.
        for (const { text } of rows) await client.query(text.replace(' ON ONLY ', ' ON '));
        await client.query('SET session_replication_role = DEFAULT');
        for (const statement of leaversOf()) await client.query(statement);
        await sealAll(this.#database);
        await client.query('VACUUM ANALYZE');
        await client.query('CHECKPOINT');
      },
    );
    this.#size = to;
  }

  /** Renews the touch of the admin's security key, which must not be older than five minutes. */
  async touch() {
    await this.#run([`UPDATE sessions SET auth_time = now() WHERE id = '${ADMIN}'`]);
  }

  async #run(statements, then = async () => undefined) {
    const client = new Client(this.#database);
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
      await then(client);
    } finally {
      await client.end();
    }
  }
}
