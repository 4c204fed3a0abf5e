import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Returns true if the organization gives AWS tokens only for the roles that its admins list. If
 * false, every role that is not in the list admits everyone.
 */
export async function listsRoles(tx: EntityManager, orgId: string): Promise<boolean> {
  const [row] = await sql<{ listed: boolean }>(tx)`
    SELECT aws_roles = 'listed' AS listed FROM organizations WHERE id = ${orgId}`;
  return row?.listed ?? false;
}
