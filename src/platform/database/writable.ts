import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { sql } from '#platform/database/statements/sql.js';

/**
 * Checks that the database takes writes now. A standby or a read-only server answers every look-up,
 * but the service would fail at its first write.
 *
 * @throws Error if the server takes no writes, or if no service has checked it for lost commits
 *   since it started; the driver's error if the server cannot be reached
 */
export async function assertTakesWrites(manager: EntityManager): Promise<void> {
  const [row] = await sql<{ read_only: boolean }>(manager)`
    SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only WHERE ${CONFIRMED}`;
  if (row?.read_only !== false) throw new Error('the database is read-only');
}
