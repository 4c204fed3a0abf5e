import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Returns true if the admins of an organization allow GitHub tokens that open every repository of
 * an installation.
 */
export async function allowsAllRepositories(tx: EntityManager, orgId: string): Promise<boolean> {
  const [row] = await sql<{ is_allowed: boolean }>(tx)`
    SELECT github_all_repositories AS is_allowed FROM organizations WHERE id = ${orgId}`;
  return row?.is_allowed ?? false;
}

/**
 * Sets if GitHub tokens may open every repository of an installation. Returns false if the setting
 * had this value already. A transaction that also locks users must lock them before this call,
 * because all transactions lock users before organizations.
 */
export async function setAllRepositories(
  tx: EntityManager,
  orgId: string,
  isAllowed: boolean,
): Promise<boolean> {
  const changed = await sql<{ id: string }>(tx)`
    UPDATE organizations SET github_all_repositories = ${isAllowed}
    WHERE id = ${orgId} AND github_all_repositories <> ${isAllowed} RETURNING id`;
  return changed.length === 1;
}
