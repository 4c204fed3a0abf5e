import { admits } from '#domain/access/reach/reach.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Lists the principals of groups of hosts in a request that no group of the user's organization
 * gives the user. Either the group does not admit the user, or the group or its login (the Unix
 * account on its hosts) does not exist. The conditions of a group do not count, nor does the host
 * of the request. Principals of another organization are left out.
 *
 * @param names principals of the form `login@group:organization`
 */
export async function unassignedPrincipals(
  tx: EntityManager,
  userId: string,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0) return [];
  const rows = await sql<{ name: string }>(tx)`
    SELECT DISTINCT x.name
    FROM users u CROSS JOIN unnest(${names}::text[]) x (name)
    WHERE u.id = ${userId} AND split_part(x.name, ':', 2) = u.org_id::text AND NOT EXISTS (
      SELECT FROM access_targets t
      WHERE t.org_id = u.org_id AND t.kind = 'host_group' AND t.name = split_part(split_part(x.name, ':', 1), '@', 2)
        AND x.name = ANY (t.principals) AND ${admits(fragment`t`, fragment`u.id`, fragment`u.org_id`)})
    ORDER BY x.name`;
  return rows.map(({ name }) => name);
}
