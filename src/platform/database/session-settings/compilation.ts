import type { Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { sql } from '#platform/database/statements/sql.js';

/**
 * Switches off the compilation of statements (JIT) for a session. No statement of this service runs
 * so long that compiling it, which takes 0.3 s, saves time.
 */
export const NO_COMPILATION = 'SET jit = off';

/**
 * Switches off the compilation of statements for the role of the service in its database, if the
 * server compiles. A pooler in transaction mode hands out connections that this process has not
 * prepared. PostgreSQL gives these connections the settings of the role. The caller holds the lock
 * of the migrations, because PostgreSQL refuses two changes of one role at once. A role may lack
 * the right to change its settings. The missing right is no fault, because each session also
 * switches compilation off by itself.
 */
export async function switchOffCompilation(manager: EntityManager, log: Logger): Promise<void> {
  if (!(await compilesStatements(manager))) return;
  try {
    await manager.query(
      "DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET jit = off', current_database()); END $$",
    );
  } catch (error) {
    log.warn(
      `The role of the database cannot switch off the compilation of statements: ${reasonOf(error)}`,
    );
  }
}

/**
 * Warns if a connection that was opened after {@link switchOffCompilation} still compiles
 * statements. A pooler can have such connections, if it opened them before the setting of the role
 * was changed.
 */
export async function warnOfCompilation(manager: EntityManager, log: Logger): Promise<void> {
  if (!(await compilesStatements(manager))) return;
  log.warn(
    'SVC_DATABASE_URL: PostgreSQL compiles statements (jit = on) on connections of a pooler, which makes them slow. ' +
      'Set jit = off for the role of the service, and reconnect the pooler (RECONNECT).',
  );
}

/**
 * Returns true if PostgreSQL compiles the statements of a session that does not switch compilation
 * off itself. To find out, it resets that setting of the connection, and does not restore it.
 */
export async function compilesStatements(manager: EntityManager): Promise<boolean> {
  await manager.query('RESET jit');
  const [row] = await sql<{ compiles: boolean }>(manager)`
    SELECT pg_jit_available() AS compiles`;
  return row?.compiles === true;
}
