import { Client } from 'pg';

/**
 * The numbers of sessions of the command `svc`, of their tokens, and of twins. A twin is a member
 * who signed in with an e-mail address of a SCIM user.
 */
const SESSIONS = 100_000;
const TOKENS = 300_000;
const TWINS = 10_000;

const idOf = (kind, n) => `('01900000-0000-7000-${kind}-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const user = idOf('8000', 'n % 10000');
const session = (n) => idOf('8021', n);

/**
 * The statements that make rows that the migrations of 0.10.0 change. Version 0.9.0 could have made
 * each of these rows.
 */
const ROWS = [
  'SET synchronous_commit = off',
  // Switches off the checks of foreign keys, so that filling is fast.
  'SET session_replication_role = replica',
  `INSERT INTO users (id, org_id, email)
     SELECT ${idOf('8022', 't.n')}, u.org_id, 'second-' || t.n || '@twins.bench.example'
     FROM generate_series(1, ${TWINS}) t (n) JOIN users u ON u.id = ${idOf('8000', 't.n')}`,
  `UPDATE users u SET attributes = jsonb_set(attributes, '{emails,1}',
       jsonb_build_object('type', 'home', 'value', 'second-' || t.n || '@twins.bench.example'))
     FROM generate_series(1, ${TWINS}) t (n) WHERE u.id = ${idOf('8000', 't.n')}`,
  // A twin is a member who signed in with an e-mail address of a SCIM user. The address counts only
  // if it is the user's only address of type `work`.
  `UPDATE users SET attributes = jsonb_set(attributes, '{emails,1,type}', '"work"') #- '{emails,0,type}'
     WHERE attributes #>> '{emails,1,value}' LIKE 'second-%'`,
  `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at, client_id)
     SELECT ${session('n')}, sha256(('session ' || n)::bytea), 'verified', ${user}, ${user}, now(), now() + interval '8 h', 'svc-cli'
     FROM generate_series(1, ${SESSIONS}) n`,
  `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
     SELECT sha256(('grant ' || n)::bytea), 'svc-cli', ${user}, ${session('n')}, '{}', now() + interval '8 h'
     FROM generate_series(1, ${SESSIONS}) n`,
  `INSERT INTO oauth_artifacts (model, id, payload, user_id, client_id, grant_id, expires_at)
     SELECT 'AccessToken', sha256(('token ' || n)::bytea),
            jsonb_build_object('gty', CASE n % 2 WHEN 0 THEN 'device_code' ELSE 'fido2' END,
                               'scope', 'openid svc:credentials svc:admin', 'extra', repeat('x', 500)),
            ${user}, 'svc-cli', sha256(('grant ' || (1 + n % ${SESSIONS}))::bytea), now() + interval '8 h'
     FROM generate_series(1, ${TOKENS}) n`,
  'SET session_replication_role = DEFAULT',
  'ANALYZE',
  'CHECKPOINT',
];

/** Fills and reads the database that is upgraded, by a connection of its own. */
export class UpgradeData {
  #client;

  constructor(database) {
    this.#client = new Client(database);
  }

  async open() {
    await this.#client.connect();
  }

  async close() {
    await this.#client.end();
  }

  async fill() {
    for (const statement of ROWS) await this.#client.query(statement);
  }

  /** Returns true if the migration that changes many rows has begun and has not ended. */
  async isInTheMiddle() {
    const begun = await this.#first(`SELECT to_regclass('record_addresses') IS NOT NULL`);
    return (
      begun &&
      (await this.#first(`SELECT EXISTS (SELECT FROM record_addresses) AND NOT EXISTS (
        SELECT FROM schema_migrations WHERE name LIKE '%-addresses-of-records.sql')`))
    );
  }

  /** Counts the migrations that are recorded, and the indexes that are not complete. */
  async state() {
    return {
      migrations: await this.#first('SELECT count(*)::int FROM schema_migrations'),
      invalid: await this.#first('SELECT count(*)::int FROM pg_index WHERE NOT indisvalid'),
    };
  }

  /** Lists the statements that run in the database, and the lock or event for which each waits. */
  async activity() {
    const { rows } = await this.#client.query(
      `SELECT pid, pg_blocking_pids(pid)::text AS behind, coalesce(wait_event_type || ' ' || wait_event, 'runs') AS waits,
              round(extract(epoch FROM clock_timestamp() - query_start) * 1000) AS ms, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) AS query
       FROM pg_stat_activity WHERE state <> 'idle' AND datname = current_database() AND pid <> pg_backend_pid()`,
    );
    return rows.map(
      ({ pid, behind, waits, ms, query }) => `${pid} ${behind} ${waits} ${ms} ms: ${query}`,
    );
  }

  async count(from) {
    return this.#first(`SELECT count(*)::int FROM ${from}`);
  }

  async #first(query) {
    const { rows } = await this.#client.query({ text: query, rowMode: 'array' });
    return rows[0][0];
  }
}
