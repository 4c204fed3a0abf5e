import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { lockingStatements } from './migration-locks.js';

/**
 * Migrations after this one run while other replicas serve large databases. Earlier ones are
 * released.
 */
const LAST_BEFORE_THE_RULE = '1763790070000-github-repositories.sql';

/** One statement of each form that keeps others waiting. */
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
];

/** Forms that wait for nothing long. */
const HARMLESS = [
  'CREATE TABLE notes (id uuid PRIMARY KEY, user_id uuid REFERENCES users (id) ON DELETE CASCADE);\nCREATE INDEX notes_user ON notes (user_id);\nUPDATE notes SET id = id',
  'ALTER TABLE users ADD COLUMN note text, ADD COLUMN at timestamptz NOT NULL DEFAULT now()',
  'ALTER TABLE users ADD CONSTRAINT users_name CHECK (name IS NOT NULL) NOT VALID',
  'CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE users SET name = NULL; RETURN NULL; END $$',
  'CREATE TRIGGER t AFTER UPDATE OF name ON users FOR EACH ROW EXECUTE FUNCTION f()',
  '-- background\nCREATE INDEX CONCURRENTLY users_new ON users (name)',
  "-- batches of users by id\nUPDATE users SET name = 'x' WHERE id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid",
  'UPDATE ssh_revocation_list SET digest = digest',
];

describe('migrations after 0.10.0', () => {
  it('have no statement that keeps a large table locked', () => {
    const names = readdirSync('migrations').filter((name) => name > LAST_BEFORE_THE_RULE);
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

  it.each(HARMLESS)('may have %s', (statement) => {
    expect(lockingStatements('9-harmless.sql', statement)).toEqual([]);
  });
});
