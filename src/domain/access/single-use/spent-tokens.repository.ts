import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/**
 * Marks a single-use token as spent. Of several calls for one token, even by different replicas,
 * exactly one returns true, because the id is the primary key of the row.
 *
 * The token stays spent even if the ceremony for which it was made fails afterwards. The ceremony
 * must then start again with a new challenge.
 *
 * @param id the `jti` of the token
 * @param expiresAt the time after which no replica accepts the token any more; the clean-up then
 *   deletes the row
 */
export async function spendToken(tx: EntityManager, id: string, expiresAt: Date): Promise<boolean> {
  const won = await sql<{ id: string }>(tx)`
    INSERT INTO spent_tokens (id, expires_at) VALUES (${id}, ${expiresAt})
    ON CONFLICT (id) DO NOTHING
    RETURNING id`;
  return won.length === 1;
}
