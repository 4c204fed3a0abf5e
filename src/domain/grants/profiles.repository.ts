import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { inOrder, sql } from '#platform/database/statements/sql.js';

/** The names of a user, and the time when the account last changed. */
export interface UserProfile {
  readonly givenName: string | null;
  readonly familyName: string | null;
  /** The userName of a user that SCIM manages, otherwise the e-mail address. */
  readonly userName: string | null;
  readonly updatedAt: Date;
}

interface ProfileRow {
  n: number;
  given_name: string | null;
  family_name: string | null;
  user_name: string | null;
  updated_at: Date;
}

/**
 * Reads the profiles of users, in the order of their ids. It is a statement of its own because the attributes of a user may be
 * long, and most requests need no profile.
 */
export async function findProfiles(
  tx: EntityManager,
  userIds: readonly string[],
): Promise<(UserProfile | undefined)[]> {
  const rows = await sql<ProfileRow>(tx)`
    SELECT k.n::int, u.updated_at, coalesce(u.user_name, u.email) AS user_name,
           CASE WHEN u.scim_managed THEN u.attributes #>> '{name,givenName}' ELSE u.given_name END AS given_name,
           CASE WHEN u.scim_managed THEN u.attributes #>> '{name,familyName}' ELSE u.family_name END AS family_name
    FROM unnest(${userIds}::uuid[]) WITH ORDINALITY AS k (id, n) JOIN users u ON u.id = k.id`;
  return inOrder(userIds.length, rows, (row) => ({
    givenName: row.given_name,
    familyName: row.family_name,
    userName: row.user_name,
    updatedAt: row.updated_at,
  }));
}
