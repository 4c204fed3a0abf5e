import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { lockingStatements } from './migration-locks.js';

/**
 * The migrations to which the rule of this test does not apply, because a version before 0.11.0
 * released them. A file that is not in this list is new, even if the time in its name is earlier.
 */
const BEFORE_THE_RULE: ReadonlySet<string> = new Set([
  '1763683200000-deployment.sql',
  '1763683201000-people.sql',
  '1763683202000-authenticators.sql',
  '1763683203000-sessions.sql',
  '1763683204000-ssh.sql',
  '1763683205000-audit.sql',
  '1763683206000-rate-limits.sql',
  '1763683207000-oauth.sql',
  '1763683208000-token-signing-keys.sql',
  '1763683209000-scim-tokens.sql',
  '1763683209100-audit-by-time.sql',
  '1763683209200-unused-clients.sql',
  '1763683210000-key-revocation-list.sql',
  '1763683211000-scim.sql',
  '1763683212000-audit-order.sql',
  '1763683213000-revocation-order.sql',
  '1763784001000-unbound-admin-tokens.sql',
  '1763784001100-key-events.sql',
  '1763784002000-acting-admins.sql',
  '1763784002100-session-origins.sql',
  '1763784002200-audit-names.sql',
  '1763784003000-audit-search.sql',
  '1763784003100-lists-in-order.sql',
  '1763784003200-look-ups.sql',
  '1763784004000-member-versions.sql',
  '1763784005000-child-grants.sql',
  '1763784006000-self-registered-clients.sql',
  '1763784007000-rate-limit-bookings.sql',
  '1763784009000-unrevoked-certificates.sql',
  '1763784009100-membership.sql',
  '1763784009110-earlier-tombstones.sql',
  '1763784009200-upstream-names.sql',
  '1763785000000-audit-names.sql',
  '1763785001000-address-ownership.sql',
  '1763786010000-github.sql',
  '1763786020000-key-removal.sql',
  '1763786030000-cli-authorization-code.sql',
  '1763786040000-kubernetes-applications.sql',
  '1763786050000-attested-ssh-keys.sql',
  '1763787010000-saml.sql',
  '1763787030000-superseded-token-signing-key.sql',
  '1763787040000-ssh-authorities.sql',
  '1763787050000-organization-domains.sql',
  '1763787060000-organization-providers.sql',
  '1763787070000-organization-issuers.sql',
  '1763788010000-revoked-certificates-of-user.sql',
  '1763788020000-member-search.sql',
  '1763788020100-members-never-seen.sql',
  '1763788030000-scim-token-rotation.sql',
  '1763788040000-audit-console.sql',
  '1763788050000-enrollment-passes.sql',
  '1763788060000-issuances-of-subject.sql',
  '1763790010000-people-of-records.sql',
  '1763790010100-addresses-of-records.sql',
  '1763790010110-names-of-removals.sql',
  '1763790010200-twins.sql',
  '1763790030000-scim-refusals.sql',
  '1763790031000-member-changes.sql',
  '1763790040000-device-sessions.sql',
  '1763790040100-device-sessions-of-before.sql',
  '1763790040200-device-tokens-of-before.sql',
  '1763790040300-index-of-device-sessions.sql',
  '1763790050000-bound-application-tokens.sql',
  '1763790050100-application-approvals.sql',
  '1763790050200-registered-resources.sql',
  '1763790060000-proven-domains.sql',
  '1763790060100-lasting-demand-for-a-pass.sql',
  '1763790070000-github-repositories.sql',
]);

/**
 * The migrations that change only tables without rows. PostgreSQL cannot build the indexes of a
 * partitioned table concurrently, and an empty table needs no concurrent build.
 */
const ON_EMPTY_TABLES: ReadonlySet<string> = new Set([
  // No release had partitions of this table before this file, so the table has no rows yet.
  '1764650010000-requests-by-day.sql',
]);

/**
 * One statement of each form that the rule must refuse, because it would lock other statements out
 * or break the version that still serves.
 */
const PLANTED = [
  'CREATE INDEX users_new ON users (name)',
  'CREATE UNIQUE INDEX IF NOT EXISTS users_new ON ONLY users (name)',
  'CREATE INDEX ON audit_events (id)',
  'CREATE INDEX CONCURRENTLY users_new ON users (name)',
  'DROP INDEX users_by_name',
  'ALTER TABLE users ADD CONSTRAINT users_name CHECK (name IS NOT NULL)',
  'ALTER TABLE users ADD CHECK (name IS NOT NULL)',
  'ALTER TABLE users\n  ADD COLUMN a text,\n  ADD CONSTRAINT users_org FOREIGN KEY (org_id) REFERENCES organizations (id)',
  'ALTER TABLE users ADD COLUMN boss uuid REFERENCES users (id)',
  'ALTER TABLE users ALTER COLUMN name SET NOT NULL',
  'ALTER TABLE users ALTER COLUMN version TYPE integer',
  'ALTER TABLE users ALTER version SET DATA TYPE integer',
  'ALTER TABLE users ADD COLUMN tag uuid NOT NULL DEFAULT gen_random_uuid()',
  'ALTER TABLE users ADD COLUMN n bigserial',
  'ALTER TABLE users ADD COLUMN low text GENERATED ALWAYS AS (lower(name)) STORED',
  'ALTER TABLE users VALIDATE CONSTRAINT users_name',
  'UPDATE users SET name = NULL',
  'DELETE FROM sessions WHERE client_id IS NULL',
  'WITH gone AS (DELETE FROM sessions RETURNING id) SELECT count(*) FROM gone',
  "DO $$ BEGIN UPDATE users SET name = 'x'; END $$",
  'LOCK TABLE users',
  'REINDEX TABLE users',
  "-- batches of users by id\nUPDATE users SET name = 'x'",
  'ALTER TABLE users ADD CONSTRAINT b CHECK (x), ADD CONSTRAINT a CHECK (y) NOT VALID',
  'ALTER TABLE users ADD CHECK (x), ADD CONSTRAINT a CHECK (y) NOT VALID',
  'ALTER TABLE users ADD boss uuid REFERENCES users (id)',
  'ALTER TABLE users ADD tag uuid DEFAULT gen_random_uuid()',
  'ALTER TABLE users ADD COLUMN IF NOT EXISTS tag uuid DEFAULT (gen_random_uuid())',
  "ALTER TABLE users ADD COLUMN at timestamptz DEFAULT now() + random() * interval '1 day'",
  'ALTER TABLE users ADD COLUMN price numeric(4,2), ADD COLUMN n numeric(4,2) DEFAULT random()',
  'ALTER TABLE users ADD COLUMN n numeric(4,2) DEFAULT random()',
  'ALTER TABLE users ADD COLUMN n int DEFAULT 0, ADD COLUMN m double precision DEFAULT random()',
  'DO $$ BEGIN CREATE INDEX users_new ON users (name); END $$',
  'DO $$ DECLARE n int; BEGIN IF n > 1 THEN ALTER TABLE users ADD CHECK (x); END IF; END $$',
  "DO $$ BEGIN EXECUTE 'DROP TABLE users'; END $$",
  "DO 'BEGIN DROP TABLE users; END'",
  'CREATE INDEX users_new ON "users" (name)',
  'ALTER TABLE "users" ALTER COLUMN "name" SET NOT NULL',
  'UPDATE public.users SET name = NULL',
  'INSERT INTO sessions (id, user_id) SELECT gen_random_uuid(), id FROM users',
  'CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ DELETE FROM users RETURNING 1 $$;\nSELECT f()',
  'CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;\nDO $$ BEGIN PERFORM f(); END $$',
  'TRUNCATE users',
  'TRUNCATE TABLE ONLY users',
  'DROP TABLE IF EXISTS users',
  'ALTER TABLE users DROP COLUMN name',
  'ALTER TABLE users DROP name',
  'ALTER TABLE users RENAME TO people',
  'ALTER TABLE users RENAME COLUMN name TO label',
  'ALTER TABLE users SET LOGGED',
  'ALTER TABLE users SET UNLOGGED',
  'CREATE TABLE parts (id uuid) PARTITION BY HASH (id);\nALTER TABLE parts ATTACH PARTITION users FOR VALUES WITH (MODULUS 1, REMAINDER 0)',
  'SELECT id FROM users FOR UPDATE',
  'SELECT id FROM users FOR SHARE',
  'CREATE TABLE notes AS SELECT id FROM users FOR NO KEY UPDATE',
  'MERGE INTO users u USING notes n ON n.id = u.id WHEN MATCHED THEN DO NOTHING',
  'CREATE TABLE IF NOT EXISTS users (id uuid);\nTRUNCATE users',
];

/** Statements that the rule must allow, because they hold no lock for long. */
const HARMLESS = [
  'CREATE TABLE notes (id uuid PRIMARY KEY, user_id uuid REFERENCES users (id) ON DELETE CASCADE);\nCREATE INDEX notes_user ON notes (user_id);\nUPDATE notes SET id = id',
  'ALTER TABLE users ADD COLUMN note text, ADD COLUMN at timestamptz NOT NULL DEFAULT now()',
  'ALTER TABLE users ADD CONSTRAINT users_name CHECK (name IS NOT NULL) NOT VALID',
  'CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE users SET name = NULL; RETURN NULL; END $$',
  'CREATE TRIGGER t AFTER UPDATE OF name ON users FOR EACH ROW EXECUTE FUNCTION f()',
  '-- background\nCREATE INDEX CONCURRENTLY users_new ON users (name)',
  "-- batches of users by id\nUPDATE users SET name = 'x' WHERE id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid",
  'UPDATE ssh_revocation_list SET digest = digest',
  'CREATE TABLE notes (id uuid REFERENCES users (id));\nINSERT INTO notes SELECT id FROM users ON CONFLICT (id) DO UPDATE SET id = excluded.id',
  "-- batches of users by id\nINSERT INTO notes SELECT id FROM users WHERE id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid",
  "INSERT INTO users (id) VALUES ('00000000-0000-0000-0000-000000000001')",
  "ALTER TABLE users ADD note jsonb NOT NULL DEFAULT '{}', ADD COLUMN n numeric(4,2) DEFAULT -1.5 NOT NULL, ADD tags text[] DEFAULT '{}'::text[]",
  'ALTER TABLE users ALTER COLUMN name DROP NOT NULL, ALTER COLUMN name SET DEFAULT random()',
  "ALTER TABLE users ADD CONSTRAINT users_name CHECK (name IN ('a, b', 'c')) NOT VALID, DROP CONSTRAINT users_old",
  "COMMENT ON TABLE users IS 'DROP TABLE users'",
  'CREATE TABLE parts (id uuid) PARTITION BY HASH (id);\nCREATE TABLE part (id uuid);\nALTER TABLE parts ATTACH PARTITION part FOR VALUES WITH (MODULUS 1, REMAINDER 0)',
];

describe('migrations after 0.10.0', () => {
  it('have no statement that keeps a large table locked', () => {
    const names = readdirSync('migrations').filter(
      (name) => !BEFORE_THE_RULE.has(name) && !ON_EMPTY_TABLES.has(name),
    );
    const found = names.flatMap((name) =>
      lockingStatements(name, readFileSync(`migrations/${name}`, 'utf8')).map(
        (statement) => `${name}: ${statement}`,
      ),
    );
    expect(found).toEqual([]);
  });

  it.each(PLANTED)('are refused for %s', (statement) => {
    expect(lockingStatements('9-planted.sql', `${statement};`)).not.toEqual([]);
  });

  it('are read by any name: the list of earlier ones has released files alone', () => {
    const names = new Set(readdirSync('migrations'));
    expect([...BEFORE_THE_RULE].filter((name) => !names.has(name))).toEqual([]);
  });

  it.each(HARMLESS)('may have %s', (statement) => {
    expect(lockingStatements('9-harmless.sql', statement)).toEqual([]);
  });
});
