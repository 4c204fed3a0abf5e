import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Returns true if the organization gives tokens for AWS only for the roles that its admins list;
 * false if a token may name any role, or none.
 */
export async function listsRoles(tx: EntityManager, orgId: string): Promise<boolean> {
  const [row] = await sql<{ listed: boolean }>(tx)`
    SELECT aws_roles = 'listed' AS listed FROM organizations WHERE id = ${orgId}`;
  return row?.listed ?? false;
}
