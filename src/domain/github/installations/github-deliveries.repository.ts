import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Records a webhook delivery: true for exactly one caller. The row is part of the transaction of
 * the change, so that a change that fails leaves the id free for the next try of GitHub.
 */
export async function recordDelivery(tx: EntityManager, id: string): Promise<boolean> {
  const won = await sql<{ id: string }>(tx)`
    INSERT INTO github_deliveries (id) VALUES (${id}) ON CONFLICT (id) DO NOTHING RETURNING id`;
  return won.length === 1;
}
