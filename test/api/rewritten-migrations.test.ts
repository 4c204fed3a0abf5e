import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMigrationConnection } from '#platform/database/connection.js';
import { compareMigrations, migrate, migrateInBackground } from '#platform/database/migrations.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { databaseDigest } from '../support/database-digest.js';
import { earlierMigrations } from '../support/earlier-migrations.js';
import { RecordingLog } from '../support/recording-log.js';
import { count } from '../support/rows.js';
import { schemaDump } from '../support/schema-dump.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/** The tables whose rows the rewritten migrations change. */
const CHANGED = [
  'record_addresses',
  'record_ties',
  'users',
  'scim_removed_identities',
  'sessions',
  'oauth_artifacts',
];
const NEVER = '2026-01-01';

/**
 * Inserts rows of 0.9.0: some that the rewritten migrations change, and some that they must leave
 * unchanged.
 */
const ROWS = `
  INSERT INTO organizations (id, name, created_at) SELECT org(n), 'org' || n || '.example', at() FROM generate_series(1, 3) n;
  INSERT INTO users (id, org_id, email, scim_managed, user_name, attributes, created_at, updated_at)
    SELECT person(n), org(1 + n % 3), 'p' || n || '@org.example', n % 2 = 0, CASE n % 2 WHEN 0 THEN 'p' || n || '@org.example' END,
           CASE n % 2 WHEN 0 THEN jsonb_build_object('emails', jsonb_build_array(
             jsonb_build_object('value', 'p' || n + 3 || '@org.example', 'primary', n % 4 = 0, 'type', 'work'))) ELSE '{}' END, at(), at()
    FROM generate_series(1, 2600) n;
  INSERT INTO scim_tombstones (org_id, email, created_at) SELECT org(1), 'gone' || n || '@org.example', at() + n * interval '1 s' FROM generate_series(1, 3) n;
  INSERT INTO scim_removed_identities (org_id, issuer, subject, created_at)
    SELECT org(1 + n % 2), 'https://idp.example', 'gone' || n, at() + n * interval '1 s' FROM generate_series(1, 6) n;
  INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name, created_at)
    SELECT person(n), person(n), sha256(n::text::bytea), 'none', 0, 'packed', true, 'key', at() FROM generate_series(1, 20) n;
  INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, client_id, created_at, expires_at)
    SELECT person(n), sha256(n::text::bytea), 'verified', person(n), person(n), at(), CASE WHEN n <= 12 THEN 'svc-cli' END, at(), at() + interval '1 h'
    FROM generate_series(1, 20) n;
  INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, created_at, expires_at)
    SELECT sha256(n::text::bytea), 'svc-cli', person(n), person(n), '{}', at(), at() + interval '1 h' FROM generate_series(1, 20) n;
  INSERT INTO oauth_artifacts (model, id, payload, user_id, client_id, grant_id, created_at, expires_at)
    SELECT CASE WHEN n % 3 = 0 AND n % 20 < 10 THEN 'DeviceCode' ELSE 'AccessToken' END, sha256(n::text::bytea),
           jsonb_build_object('gty', CASE WHEN n % 2 = 0 AND n % 20 < 10 THEN 'device_code' ELSE 'fido2' END,
                              'scope', CASE WHEN n % 5 < 2 THEN 'openid svc:admin' ELSE 'openid' END),
           person(1 + n % 20), 'svc-cli', sha256((1 + n % 20)::text::bytea), at(), at() + interval '1 h'
    FROM generate_series(1, 60) n`;
const FUNCTIONS = `
  CREATE FUNCTION org(n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
  CREATE FUNCTION person(n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT ('01900000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid $$;
  CREATE FUNCTION at() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2026-11-01 12:00:00Z' $$`;
const NO_FUNCTIONS = 'DROP FUNCTION org, person, at';

describe('the migrations that were rewritten after 0.10.0', () => {
  const log = new RecordingLog();
  const databases: TestDatabase[] = [];
  let folder: string;
  let from010: DataSource;
  let from09: DataSource;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    const of09 = await earlierMigrations('0.9', folder);
    const of010 = await earlierMigrations('0.10', folder);
    from09 = await upgraded([of09]);
    from010 = await upgraded([of09, of010]);
  });
  afterAll(async () => {
    for (const each of [from09, from010]) await each.destroy();
    for (const each of databases) await each.drop();
    await removeDirectory(folder);
  });

  /**
   * Applies the migrations of earlier versions in turn, inserts rows after the first, and then
   * applies those of this version.
   */
  async function upgraded([first, ...others]: readonly URL[]): Promise<DataSource> {
    const database = await createEmptyDatabase();
    databases.push(database);
    const dataSource = await openMigrationConnection({ connectionString: database.url }, log);
    await migrate(dataSource, log, first);
    for (const text of [FUNCTIONS, ROWS, NO_FUNCTIONS]) await dataSource.query(text);
    for (const version of others) await migrate(dataSource, log, version);
    await migrate(dataSource, log);
    await migrateInBackground(dataSource, log);
    return dataSource;
  }

  it('leave the same schema as their earlier texts', async () => {
    expect(await schemaDump(from010)).toEqual(await schemaDump(from09));
    expect((await schemaDump(from09)).length).toBeGreaterThan(500);
  });

  it('leave the same rows as their earlier texts', async () => {
    for (const each of [from09, from010]) {
      await each.query('UPDATE record_ties SET created_at = $1', [NEVER]);
      // random values, which differ between the databases
      await each.query('UPDATE sessions SET sid = NULL');
    }
    const [one, other] = [await databaseDigest(from09), await databaseDigest(from010)];
    for (const table of CHANGED) expect([table, other[table]]).toEqual([table, one[table]]);
    expect(CHANGED.map((table) => Number.parseInt(one[table] ?? '', 10))).toEqual([
      2600, 1298, 2600, 6, 20, 56,
    ]);
    expect(await count(from09, 'sessions WHERE of_device')).toBe(10);
  });

  it('are accepted with their earlier texts, and with no other', async () => {
    expect(await compareMigrations(from010.manager)).toEqual({ missing: [], later: [] });
    await from010.query(
      `UPDATE schema_migrations SET sha256 = 'another' WHERE name LIKE '%-twins.sql'`,
    );
    await expect(migrate(from010, log)).rejects.toThrow(/twins\.sql was changed/);
  });
});

describe('a database of a build after 0.13.0, which decided by other functions', () => {
  let folder: string;
  let database: TestDatabase;
  let fresh: TestDatabase;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    database = await createEmptyDatabase();
    fresh = await createEmptyDatabase();
  });
  afterAll(async () => {
    await database.drop();
    await fresh.drop();
    await removeDirectory(folder);
  });

  it('gets all that a new database has', async () => {
    const log = new RecordingLog();
    const after013 = await openMigrationConnection({ connectionString: database.url }, log);
    const now = await openMigrationConnection({ connectionString: fresh.url }, log);
    try {
      await migrate(after013, log, await earlierMigrations('after 0.13', folder));
      for (const each of [after013, now]) {
        await migrate(each, log);
        await migrateInBackground(each, log);
      }
      const withoutPlaces = async (of: DataSource) =>
        (await schemaDump(of)).map((line) => line.replace(/^(column \w+\.)\d+/, '$1'));
      const has = new Set(await withoutPlaces(after013));
      const missing = (await withoutPlaces(now)).filter((line) => !has.has(line));
      expect(missing.filter((line) => !line.includes('principals_of_group'))).toEqual([]);
      expect(await compareMigrations(after013.manager)).toEqual({ missing: [], later: [] });
    } finally {
      for (const each of [after013, now]) await each.destroy();
    }
  });
});
