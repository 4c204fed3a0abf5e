import { createHash, randomBytes } from 'node:crypto';
import { Client } from 'pg';

/** The numbers of users, groups and memberships that the benchmark makes. */
export const USERS = 100_000;
export const GROUPS = 10_000;
export const MEMBERSHIPS = 1_100_000;
/**
 * The number of users who are deleted while the deletion is measured; they have the largest ids.
 * Each has 20 sessions and 50 certificates.
 */
export const LEAVERS = 1000;
export const REVOKED = 100_000;

/**
 * Group 0 has all users, group 1 has ten, and the other groups share the remaining memberships.
 * SHARED is the number of these.
 */
const SMALL_GROUP = 10;
const SHARED = MEMBERSHIPS - USERS - SMALL_GROUP;

const ORG = '01900000-0000-7000-9000-000000000000';
const DOMAIN = 'scim.bench.example';
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

/**
 * These functions return the id of a user and the id of a group. The ids ascend with the number, as
 * the ids that the server makes ascend with time.
 */
export const userId = (n) => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
export const groupId = (n) => `01900000-0000-7000-8001-${n.toString(16).padStart(12, '0')}`;

/** Returns a user as an identity provider sends it. */
export function benchUser(n) {
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User', ENTERPRISE],
    userName: `user-${n}@${DOMAIN}`,
    externalId: `external-${n}`,
    active: true,
    displayName: `Given${n} Family`,
    name: { givenName: `Given${n}`, familyName: 'Family', formatted: `Given${n} Family` },
    title: 'Engineer',
    locale: 'en-US',
    emails: [{ value: `user-${n}@${DOMAIN}`, type: 'work', primary: true }],
    phoneNumbers: [{ value: `+1 555 ${n}`, type: 'mobile' }],
    [ENTERPRISE]: { employeeNumber: String(n), department: 'Research' },
  };
}

/**
 * The SQL expression for the attributes that {@link benchUser} gives a user; `n` is the number of
 * the user.
 */
const ATTRIBUTES = `jsonb_build_object(
  'displayName', 'Given' || n || ' Family',
  'name', jsonb_build_object('givenName', 'Given' || n, 'familyName', 'Family', 'formatted', 'Given' || n || ' Family'),
  'title', 'Engineer',
  'locale', 'en-US',
  'emails', jsonb_build_array(jsonb_build_object('value', 'user-' || n || '@${DOMAIN}', 'type', 'work', 'primary', true)),
  'phoneNumbers', jsonb_build_array(jsonb_build_object('value', '+1 555 ' || n, 'type', 'mobile')),
  '${ENTERPRISE}', jsonb_build_object('employeeNumber', n::text, 'department', 'Research'))`;
const USER_ID = `('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`;
const groupIdOf = (g) => `('01900000-0000-7000-8001-' || lpad(to_hex(${g}), 12, '0'))::uuid`;
const userIdOf = (u) => `('01900000-0000-7000-8000-' || lpad(to_hex(${u}), 12, '0'))::uuid`;

const insertUsers = (users) => `
INSERT INTO users (id, org_id, email, name, scim_managed, user_name, external_id, attributes)
  SELECT ${USER_ID}, '${ORG}', 'user-' || n || '@${DOMAIN}', 'Given' || n || ' Family', true, 'user-' || n || '@${DOMAIN}',
         'external-' || n, ${ATTRIBUTES}
  FROM generate_series(0, ${users - 1}) n`;

/**
 * The statements that fill the tables with rows in the order of their ids. Foreign keys are not
 * checked, so that filling is fast.
 */
const FILL = `
SET session_replication_role = replica;${insertUsers(USERS)};
INSERT INTO groups (id, org_id, display_name, external_id)
  SELECT ${groupIdOf('n')}, '${ORG}', 'Group ' || n, 'group-' || n FROM generate_series(0, ${GROUPS - 1}) n;
INSERT INTO group_members (group_id, user_id)
  SELECT ${groupIdOf('0')}, ${USER_ID} FROM generate_series(0, ${USERS - 1}) n;
INSERT INTO group_members (group_id, user_id)
  SELECT ${groupIdOf('1')}, ${USER_ID} FROM generate_series(0, ${SMALL_GROUP - 1}) n;
INSERT INTO group_members (group_id, user_id)
  SELECT ${groupIdOf('g')}, ${userIdOf('u')} FROM (
    SELECT 2 + k % ${GROUPS - 2} AS g, ((k % ${GROUPS - 2}) * 37 + k / ${GROUPS - 2} * 997) % ${USERS} AS u
    FROM generate_series(0, ${SHARED - 1}) k) shared
  ORDER BY g, u;
INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
  SELECT gen_random_uuid(), ${USER_ID}, sha256(n::text::bytea), 'none', 0, 'packed', true, 'bench'
  FROM generate_series(${USERS - LEAVERS}, ${USERS - 1}) n;
INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at)
  SELECT gen_random_uuid(), sha256((k.id || '-' || s)::bytea), 'verified', k.user_id, k.id, now(), now() + interval '1 day'
  FROM authenticators k, generate_series(1, 20) s WHERE k.name = 'bench';
INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after,
                              valid_before)
  SELECT 1000000 + n * 50 + c, ${USER_ID}, '${ORG}', gen_random_uuid(), 'bench', '{bench}', 'SHA256:bench', (SELECT fingerprint FROM ssh_authorities LIMIT 1),
         now(), now() + interval '1 day'
  FROM generate_series(${USERS - LEAVERS}, ${USERS - 1}) n, generate_series(1, 50) c;
SET session_replication_role = DEFAULT;
VACUUM ANALYZE users;
VACUUM ANALYZE groups;
VACUUM ANALYZE group_members;
VACUUM ANALYZE authenticators;
VACUUM ANALYZE sessions;
VACUUM ANALYZE ssh_certificates`;

/**
 * The statement that revokes certificates. Their serials have no pattern, and none of them has
 * expired.
 */
const REVOKE = `
INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after,
                              valid_before, revoked_at, revoke_reason, revoked_by)
  SELECT 1700000000000 + n * 1000 + (n * 7919) % 1000, '${userId(0)}', '${ORG}', gen_random_uuid(), 'bench', '{bench}', 'SHA256:bench',
         (SELECT fingerprint FROM ssh_authorities LIMIT 1), now(), now() + interval '1 day', now(), 'bench', 'bench'
  FROM generate_series(1, ${REVOKED}) n;
VACUUM ANALYZE ssh_certificates`;

/** Fills the database of a running server, by a connection of its own without time-outs. */
export class ScimData {
  #database;

  constructor(database) {
    this.#database = database;
  }

  /**
   * Makes an organization with 100,000 users and 10,000 groups.
   * @returns the SCIM token of its identity provider
   */
  async fill() {
    const token = await this.#organization();
    await this.#run(FILL);
    return token;
  }

  /**
   * Makes an organization with a number of users.
   * @returns the SCIM token of its identity provider
   */
  async fillUsers(users) {
    const token = await this.#organization();
    await this.#run(`${insertUsers(users)}; VACUUM ANALYZE users`);
    return token;
  }

  async #organization() {
    const token = `svc_scim_${randomBytes(32).toString('base64url')}`;
    const hash = createHash('sha256').update(token).digest('hex');
    await this.#run(`
      INSERT INTO organizations (id, name, membership) VALUES ('${ORG}', '${DOMAIN}', 'scim_only');
      INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ('${ORG}', '${DOMAIN}', true, now());
      INSERT INTO scim_tokens (id, org_id, hash, description, created_by, expires_at)
      VALUES (gen_random_uuid(), '${ORG}', '\\x${hash}', 'bench', gen_random_uuid(), now() + interval '1 day')`);
    return token;
  }

  /**
   * Fills the audit log of the organization with events of its users and of SCIM, the oldest first.
   *
   * @returns the token of the session of its admin, who is the first user
   */
  async fillAudit(events) {
    const token = randomBytes(32).toString('base64url');
    const hash = createHash('sha256').update(token).digest('hex');
    await this.#run(`
      INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, details, created_at)
        SELECT gen_random_uuid(), CASE n % 3 WHEN 0 THEN 'scim_operation' WHEN 1 THEN 'login_success' ELSE 'ssh_credential' END,
               CASE n % 3 WHEN 0 THEN 'admin' WHEN 1 THEN 'auth' ELSE 'oauth' END,
               CASE n % 3 WHEN 0 THEN NULL ELSE ${userIdOf(`n % ${USERS}`)} END, ${userIdOf(`n % ${USERS}`)}, '${ORG}', 'bench',
               CASE n % 3 WHEN 0 THEN jsonb_build_object('operation', 'update', 'email', 'user-' || n % ${USERS} || '@${DOMAIN}')
                          ELSE jsonb_build_object('key_id', 'bench', 'n', n) END,
               now() - make_interval(secs => ${events} - n)
        FROM generate_series(0, ${events - 1}) n;
      VACUUM ANALYZE audit_events;
      UPDATE users SET is_org_admin = true WHERE id = '${userId(0)}';
      INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
        SELECT gen_random_uuid(), '${userId(0)}', sha256('admin'), 'none', 0, 'packed', true, 'admin';
      INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at)
        SELECT gen_random_uuid(), '\\x${hash}', 'verified', user_id, id, now(), now() + interval '1 day'
        FROM authenticators WHERE name = 'admin'`);
    return token;
  }

  /**
   * Revokes 100,000 certificates, so that the download of a long key revocation list can be
   * measured.
   */
  revoke() {
    return this.#run(REVOKE);
  }

  /** Runs statements one by one, because VACUUM cannot run in a transaction. */
  async #run(statements) {
    const client = new Client(this.#database);
    await client.connect();
    try {
      for (const statement of statements.split(';')) await client.query(statement);
    } finally {
      await client.end();
    }
  }
}
