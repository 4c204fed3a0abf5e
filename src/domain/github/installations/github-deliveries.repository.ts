import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Records the id of a webhook delivery, so that a delivery is applied once. Of several calls with
 * the same id, exactly one returns true. The row is written in the transaction of the change. So if
 * the transaction fails, the row is gone and GitHub can deliver the same change again.
 */
export async function recordDelivery(tx: EntityManager, id: string): Promise<boolean> {
  const won = await sql<{ id: string }>(tx)`
    INSERT INTO github_deliveries (id) VALUES (${id}) ON CONFLICT (id) DO NOTHING RETURNING id`;
  return won.length === 1;
}
