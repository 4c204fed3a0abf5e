import { readdir } from 'node:fs/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMigrationConnection } from '#platform/database/connection.js';
import { migrate } from '#platform/database/migrations.js';
import { openDatabase } from '#platform/database/open-database.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { earlierMigrations } from '../support/earlier-migrations.js';
import { RecordingLog } from '../support/recording-log.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/** The longest that one issuance may take during the upgrade, in milliseconds. */
const LONGEST_PAUSE = 1_000;

const USERS = 2_500;
const ROWS = `
  CREATE FUNCTION pg_temp.person(n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT ('01900000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid $$;
  INSERT INTO organizations (id, name) VALUES (pg_temp.person(0), 'org.example');
  INSERT INTO users (id, org_id, email, scim_managed, user_name)
    SELECT pg_temp.person(n), pg_temp.person(0), 'p' || n || '@org.example', true, 'p' || n || '@org.example' FROM generate_series(1, ${USERS}) n;
  INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
    SELECT pg_temp.person(n), pg_temp.person(n), sha256(n::text::bytea), 'none', 0, 'packed', true, 'key' FROM generate_series(1, 100) n;
  INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, client_id, expires_at)
    SELECT pg_temp.person(n), sha256(n::text::bytea), 'verified', pg_temp.person(n), pg_temp.person(n), now(), 'svc-cli', now() + interval '1 h'
    FROM generate_series(1, 100) n`;

/** The statements of 0.9.0 for one credential that could have to wait for a migration. */
const ISSUE = [
  'BEGIN',
  `SELECT s.of FROM (SELECT s.id AS of FROM sessions s JOIN users u ON u.id = s.user_id JOIN authenticators a ON a.id = s.authenticator_id
     WHERE s.token_hash = sha256('7') FOR SHARE OF u, s) s`,
  `INSERT INTO audit_events (id, type, class, details) VALUES (gen_random_uuid(), 'ssh_credential', 'oauth', '{}')`,
  'COMMIT',
];

describe('an upgrade from 0.9.0 while credentials are issued', () => {
  let database: TestDatabase;
  let folder: string;
  let client: Client;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    database = await createEmptyDatabase();
    const log = new RecordingLog();
    const dataSource = await openMigrationConnection({ connectionString: database.url }, log);
    await migrate(dataSource, log, await earlierMigrations('0.9', folder));
    await dataSource.query(ROWS);
    await dataSource.destroy();
    client = await connected();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
    await removeDirectory(folder);
  });

  async function connected(): Promise<Client> {
    const connection = new Client({ connectionString: database.url });
    await connection.connect();
    return connection;
  }
  const first = async (query: string) =>
    (await client.query({ text: query, rowMode: 'array' })).rows[0]?.[0];

  it('stops no issuance, neither killed in the middle nor by three starts at once', async () => {
    const issuing = await issue(await connected());
    const dataSource = await openMigrationConnection(
      { connectionString: database.url },
      new RecordingLog(),
    );
    await migrate(
      dataSource,
      new RecordingLog(),
      await earlierMigrations('before batches', folder),
    );
    await dataSource.destroy();
    const holder = await connected(); // this lock stops the migration at its tenth batch
    await holder.query(`BEGIN; SELECT FROM users WHERE id::text LIKE '%${USERS - 100}' FOR UPDATE`);
    // This connection stands for a whole start: a real one might go on by another connection when
    // this one is terminated.
    const dying = await openMigrationConnection(
      { connectionString: database.url },
      new RecordingLog(),
    );
    const killed = migrate(dying, new RecordingLog()).catch((error: unknown) => error);
    await expect.poll(() => first('SELECT count(*)::int FROM record_addresses')).toBe(2_250);
    await client.query(
      `SELECT pg_terminate_backend(l.pid) FROM pg_locks l
       WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    expect(await killed).toBeInstanceOf(Error);
    await dying.destroy();
    await holder.query('ROLLBACK');
    await holder.end();

    const logs = [new RecordingLog(), new RecordingLog(), new RecordingLog()];
    const replicas = await Promise.all(
      logs.map((log) => openDatabase(database.config, 'test', log)),
    );
    await expect
      .poll(
        () =>
          first(
            `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('sessions_of_device')`,
          ),
        { timeout: 90_000 },
      )
      .toBe(true);
    const files = await readdir('migrations');
    await expect
      .poll(() => first('SELECT count(*)::int FROM schema_migrations'))
      .toBe(files.length);
    for (const replica of replicas) await replica.close();
    const { issued, longestPause } = await issuing.stop();

    expect(issued).toBeGreaterThan(100);
    expect(longestPause).toBeLessThan(LONGEST_PAUSE);
    expect(await first('SELECT count(*)::int FROM record_addresses')).toBe(USERS);
    const applied = logs.flatMap(({ lines }) => lines.filter((line) => line.includes('Applied')));
    expect(new Set(applied).size).toBe(applied.length);
  });
});

/**
 * Issues credentials without a pause. Its `stop` returns the number of credentials and the longest
 * time of one in milliseconds.
 */
async function issue(connection: Client) {
  const state = { isStopped: false };
  let issued = 0;
  let longestPause = 0;
  const ended = (async () => {
    let last = performance.now();
    while (!state.isStopped) {
      for (const statement of ISSUE) await connection.query(statement);
      longestPause = Math.max(longestPause, performance.now() - last);
      last = performance.now();
      issued += 1;
    }
    await connection.end();
  })();
  return {
    async stop() {
      state.isStopped = true;
      await ended;
      return { issued, longestPause };
    },
  };
}
