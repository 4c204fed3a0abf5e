import type { Logger } from '@nestjs/common';
import { DATABASE_PAGE } from '#platform/database/url/database-url.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { composedSql, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { TIMEOUTS } from './connection.js';

/**
 * The settings that each session of the main pool needs. A pooler in transaction mode does not keep
 * the settings of a session, so the database role must have them.
 */
const NEEDED = {
  statement_timeout: `${TIMEOUTS.statement_timeout / 1000}s`,
  lock_timeout: `${TIMEOUTS.lock_timeout / 1000}s`,
  idle_in_transaction_session_timeout: `${TIMEOUTS.idle_in_transaction_session_timeout / 1000}s`,
  jit: 'off',
  default_transaction_isolation: 'read committed',
} as const;

/**
 * Prepares the database role of the service for a pooler in transaction mode. If a connection of
 * the pooler lacks a needed setting, all needed settings are stored in the role by ALTER ROLE.
 *
 * @param pooled a connection through the pooler (SVC_DATABASE_URL)
 * @param direct a connection to PostgreSQL itself (SVC_DATABASE_DIRECT_URL). If its role may not
 *   change the role of `pooled`, a warning is logged
 * @throws Error if the two URLs name different databases
 */
export async function preparePooledRole(
  pooled: EntityManager,
  direct: EntityManager,
  log: Logger,
): Promise<void> {
  const [there, here] = [await identityOf(pooled), await identityOf(direct)];
  if (there.identity !== here.identity) {
    throw new Error(
      `SVC_DATABASE_DIRECT_URL: is another database than SVC_DATABASE_URL (${DATABASE_PAGE})`,
    );
  }
  const isLoose = await losesCommits(pooled);
  if (!isLoose && (await lackedBy(pooled)).length === 0) return;
  const settings = isLoose ? { ...NEEDED, synchronous_commit: 'on' } : NEEDED;
  try {
    for (const [name, value] of Object.entries(settings)) {
      const text = 'SELECT format($1, $2::text, current_database(), $3::text) AS statement';
      const template = `ALTER ROLE %I IN DATABASE %I SET ${name} = %L`;
      const [made] = await composedSql<{ statement: string }>(direct, text, [
        template,
        there.role,
        value,
      ]);
      if (made) await direct.query(made.statement);
    }
  } catch (error) {
    log.warn(`The settings of the role ${there.role} cannot be changed: ${reasonOf(error)}`);
  }
}

/** Warns of each setting that a new connection of the pooler lacks. */
export async function warnOfPooledRole(pooled: EntityManager, log: Logger): Promise<void> {
  const lacked = (await lackedBy(pooled)).map((name) => `${name} = ${NEEDED[name]}`);
  if (await losesCommits(pooled)) lacked.push('synchronous_commit = on');
  if (lacked.length === 0) return;
  const settings = lacked.join(', ');
  log.warn(
    `SVC_DATABASE_URL: connections of the pooler lack ${settings}. Set them for the role of the service ` +
      `(ALTER ROLE), and reconnect the pooler (RECONNECT) (${DATABASE_PAGE})`,
  );
}

async function lackedBy(pooled: EntityManager): Promise<(keyof typeof NEEDED)[]> {
  const rows = await sql<{ name: keyof typeof NEEDED }>(pooled)`
    SELECT needed.key AS name FROM json_each_text(${JSON.stringify(NEEDED)}::json) needed
    WHERE current_setting(needed.key) IS DISTINCT FROM needed.value`;
  return rows.map(({ name }) => name);
}

/** Returns true if a crash would lose commits of the pooler's connections (`durability.ts`). */
async function losesCommits(pooled: EntityManager): Promise<boolean> {
  const [row] = await sql<{ setting: string }>(pooled)`
    SELECT current_setting('synchronous_commit') AS setting`;
  return row?.setting === 'off';
}

async function identityOf(tx: EntityManager): Promise<{ identity: string; role: string }> {
  const [row] = await sql<{ identity: string; role: string }>(tx)`
    SELECT concat_ws(' ', pg_postmaster_start_time(), oid, datname) AS identity, session_user::text AS role
    FROM pg_database WHERE datname = current_database()`;
  if (!row) throw new Error('SELECT returned no row');
  return row;
}
