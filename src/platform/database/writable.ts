import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { sql } from '#platform/database/statements/sql.js';

/**
 * Asks the database if it takes writes now. A standby and a server that was made read-only answer
 * every look-up, and this service can do nothing without a write.
 *
 * @throws Error if it takes none or is not confirmed, or the driver's error if it is away
 */
export async function assertTakesWrites(manager: EntityManager): Promise<void> {
  const [row] = await sql<{ read_only: boolean }>(manager)`
    SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only WHERE ${CONFIRMED}`;
  if (row?.read_only !== false) throw new Error('the database is read-only');
}
