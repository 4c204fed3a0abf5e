import { createHash, randomBytes } from 'node:crypto';
import { Client } from 'pg';

export const MEMBERS = 100_000;
export const EVENTS = 1_000_000;
export const DOMAIN = 'pages.bench.example';

const ORG = '01900000-0000-7000-a000-000000000000';
const ADMIN = '01900000-0000-7000-a001-000000000000';
/** The AAGUID (the id of a model) of a security key that is certified by FIPS 140. */
const AAGUID = '73bb0cd4-e502-49b8-9c6f-b59445bf720b';

const idOf = (kind, n) => `('01900000-0000-7000-${kind}-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const member = (n) => idOf('a002', n);

/** These functions return the id of the n-th member and the id of the n-th event. */
export const memberId = (n) => `01900000-0000-7000-a002-${n.toString(16).padStart(12, '0')}`;
export const eventId = (n) => `01900000-0000-7000-a004-${n.toString(16).padStart(12, '0')}`;

/** The seconds from the first event to the last event: 89 days. */
const SPAN = 7_700_000;

/** The time between two rounds of the sealer, which signs the audit log, in milliseconds. */
const ROUND = 60_000;

/**
 * The tables that become large. Their indexes are made after their rows, because that is faster.
 */
const LARGE = ['users', 'authenticators', 'audit_events'];

/**
 * The SQL expression for the type of event `n`. The types repeat in a cycle of 20. One event in
 * 1,000 is an admin's promotion of a member.
 */
const TYPE = `CASE WHEN n % 1000 = 0 THEN 'admin_promote' WHEN n % 20 < 8 THEN 'oauth_token_issued' WHEN n % 20 < 13 THEN 'login_success'
  WHEN n % 20 < 16 THEN 'ssh_credential' WHEN n % 20 < 18 THEN 'upstream_login' WHEN n % 20 < 19 THEN 'login_failed' ELSE 'logout' END`;

/**
 * Returns the statements that make an organization with its domain and one admin. The token of the
 * admin's session has the given SHA-256.
 */
export function organizationRows({ org, admin, domain, hash }) {
  return [
    `INSERT INTO organizations (id, name, provisioned) VALUES ('${org}', '${domain}', true)`,
    `INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ('${org}', '${domain}', true, now())`,
    `INSERT INTO users (id, org_id, email, name, is_org_admin) VALUES ('${admin}', '${org}', 'admin@${domain}', 'Admin', true)`,
    `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name, last_used_at)
       VALUES ('${admin}', '${admin}', sha256('admin'), 'none', 0, 'packed', true, 'admin', now())`,
    `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at)
       VALUES ('${admin}', '\\x${hash}', 'verified', '${admin}', '${admin}', now(), now() + interval '1 day')`,
  ];
}

/**
 * Returns the statement that makes the audit events. Their times are evenly spread over the last 89
 * days.
 */
function eventRows(events) {
  return `INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, actor_email, subject_email, request_id, ip, user_agent,
                           client_name, details, created_at)
   SELECT ${idOf('a004', 'n')}, t, CASE WHEN t LIKE 'admin%' THEN 'admin' WHEN t LIKE 'log%' OR t LIKE 'up%' THEN 'auth' ELSE 'oauth' END,
          CASE WHEN t = 'admin_promote' THEN '${ADMIN}'::uuid ELSE u END, u, '${ORG}',
          CASE WHEN t = 'admin_promote' THEN 'admin@${DOMAIN}' ELSE a END, a, 'request-' || n / 2,
          ('10.' || m % 200 || '.' || m / 200 % 250 || '.' || n % 250)::inet,
          'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36',
          CASE WHEN t = 'oauth_token_issued' THEN 'Application ' || n % 40 END,
          CASE t WHEN 'oauth_token_issued' THEN jsonb_build_object('client_id', 'client-' || n % 40, 'scope', 'openid email')
                 WHEN 'login_success' THEN jsonb_build_object('key_id', ${idOf('a003', 'm * 2')}, 'key_name', 'Key 0', 'aaguid', '${AAGUID}')
                 WHEN 'login_failed' THEN jsonb_build_object('reason', 'This security key is not registered here.')
                 WHEN 'ssh_credential' THEN jsonb_build_object('serial', n::text, 'key_id', a, 'principals', jsonb_build_array(a))
                 WHEN 'upstream_login' THEN jsonb_build_object('provider', 'demo', 'email', a)
                 ELSE '{}' END,
          now() - make_interval(secs => (${events} - n) * ${SPAN / events})
   FROM (SELECT n, ${TYPE} AS t, m, ${member('m')} AS u, 'user-' || m || '@${DOMAIN}' AS a
         FROM (SELECT n, (n::bigint * 7919 % ${MEMBERS})::int AS m FROM generate_series(0, ${events - 1}) n) s) e`;
}

function fill(adminHash, events) {
  return [
    ...organizationRows({ org: ORG, admin: ADMIN, domain: DOMAIN, hash: adminHash }),
    `INSERT INTO users (id, org_id, email, name, is_org_admin, active)
       SELECT ${member('n')}, '${ORG}', 'user-' || n || '@${DOMAIN}', 'Given' || n || ' Family' || n % 5000, n % 10000 = 1, n % 500 <> 3
       FROM generate_series(0, ${MEMBERS - 1}) n`,
    // Of every ten members, one has no key and one has two.
    `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, aaguid, user_verification, name, last_used_at)
       SELECT ${idOf('a003', 'n * 2 + k')}, ${member('n')}, sha256((n || '-' || k)::bytea), 'none', 0, 'packed',
              CASE n % 3 WHEN 0 THEN '${AAGUID}'::uuid ELSE 'ee882879-721c-4913-9775-3dfcce97072a' END, true, 'Key ' || k,
              now() - make_interval(days => n % 400)
       FROM generate_series(0, ${MEMBERS - 1}) n, generate_series(0, 1) k WHERE n % 10 <> 0 AND (k = 0 OR n % 10 = 1)`,
    eventRows(events),
    `INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
       SELECT 1000000 + n, ${member('n')}, '${ORG}', '${ADMIN}', 'bench', '{bench}', 'SHA256:bench',
              (SELECT fingerprint FROM ssh_authorities LIMIT 1), now(), now() + interval '1 day'
       FROM generate_series(0, 19999) n`,
  ];
}

/**
 * Fills the database of a running server with an organization of 100,000 members and audit events
 * of three months.
 *
 * @param events the number of audit events
 * @returns the token of the session of its admin
 */
export async function fillPages(database, events = EVENTS) {
  const token = randomBytes(32).toString('base64url');
  const hash = createHash('sha256').update(token).digest('hex');
  await load(database, LARGE, fill(hash, events));
  return token;
}

/**
 * Fills the audit log of a running server, which may be of any version, with events of three
 * months. It fills no other table.
 */
export async function fillEvents(database, events) {
  await load(database, ['audit_events'], [eventRows(events)]);
}

/**
 * Runs statements that insert many rows. Drops the indexes of the large tables first, and makes
 * them again afterwards, which is faster.
 */
async function load(database, large, statements) {
  const client = new Client(database);
  await client.connect();
  await holdSealer(database);
  try {
    await client.query(
      "SET maintenance_work_mem = '512MB'; SET synchronous_commit = off; SET statement_timeout = 0",
    );
    await makeMonths(client);
    const { rows } = await client.query(
      `SELECT indexrelid::regclass AS name, pg_get_indexdef(indexrelid) AS text FROM pg_index i
       WHERE indrelid = ANY ($1::regclass[]) AND NOT indisunique
         AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
      [large],
    );
    for (const { name } of rows) await client.query(`DROP INDEX ${name}`);
    for (const statement of statements) await client.query(statement);
    for (const { text } of rows) await client.query(text.replace(' ON ONLY ', ' ON '));
    for (const table of [...large, 'ssh_certificates', 'sessions']) {
      await client.query(`VACUUM ANALYZE ${table}`);
    }
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
  }
}

/**
 * Keeps the server from sealing (signing) the new events while the benchmark measures. It sets the
 * time of the last round again and again, so that the server believes that another process has just
 * begun one. The updates stop when the database stops.
 */
async function holdSealer(database) {
  const client = new Client(database);
  await client.connect();
  const { rows } = await client.query(`SELECT to_regclass('audit_seal') IS NOT NULL AS is_there`);
  if (!rows[0].is_there) return client.end();
  const hold = () => client.query('UPDATE audit_seal SET round_at = clock_timestamp()');
  await hold();
  const timer = setInterval(() => {
    hold().catch(() => clearInterval(timer));
  }, ROUND / 6);
  timer.unref();
  client.on('error', () => clearInterval(timer));
}

/**
 * Makes the partitions of this month and of the three months before, if the audit log has
 * partitions.
 */
async function makeMonths(client) {
  const { rows } = await client.query(
    `SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'make_audit_month') AS has_months`,
  );
  if (!rows[0].has_months) return;
  await client.query(
    `SELECT make_audit_month(c, now() - n * interval '1 month') FROM unnest(ARRAY['auth', 'oauth']) c, generate_series(0, 3) n`,
  );
}
