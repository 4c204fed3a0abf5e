import type { Logger } from '@nestjs/common';
import { DATABASE_PAGE } from '#platform/database/url/database-url.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Sets the isolation level of a session's transactions to READ COMMITTED. The statements of this
 * service lock each row on which a decision depends. At this level, PostgreSQL reads such a row
 * again under the lock (manual of PostgreSQL, section 13.2.1). Under a stricter level the decisions
 * would be the same, but PostgreSQL would abort many of the transactions that wait for one row.
 */
export const READ_COMMITTED = "SET default_transaction_isolation = 'read committed'";

/**
 * Warns if the database or the role has a stricter isolation level. The service sets READ COMMITTED
 * for its own sessions, but a pooler in transaction mode hands out connections without that
 * setting.
 */
export async function warnOfIsolation(manager: EntityManager, log: Logger): Promise<void> {
  const [row] = await sql<{ level: string }>(manager)`
    SELECT reset_val AS level FROM pg_settings WHERE name = 'default_transaction_isolation'`;
  if (!row || row.level === 'read committed' || row.level === 'read uncommitted') return;
  log.warn(
    `SVC_DATABASE_URL: default_transaction_isolation is ${row.level}. The service uses read committed for its own sessions, ` +
      'but not behind a pooler in transaction mode, where requests that wait for each other are repeated and become slow. ' +
      `Set default_transaction_isolation = 'read committed' for the role of the service (${DATABASE_PAGE})`,
  );
}
