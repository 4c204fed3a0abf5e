import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Stores the setting SVC_ACCESS_BY_GROUPS. A change to false queues a row for each target that an
 * assigned group opens. So the credentials that only the group allowed end. The caller retries the
 * transaction, because PostgreSQL may cancel it after a deadlock.
 *
 * A trigger on the queue raises the version of the access rules (`access_versions`) of each
 * organization concerned. A statement that issues a credential locks the row of this version, and
 * compares the version with the one that it read before. So there are two cases. The issuing
 * statement decides again by the new setting, or this transaction waits for its commit, and the
 * queue then ends the issued credential. The lock on the assignments keeps groups from being
 * assigned until the commit.
 *
 * @returns true if the setting changed
 */
export async function storeGroupSetting(tx: EntityManager, byGroups: boolean): Promise<boolean> {
  const changed = await sql<{ is: boolean }>(tx)`
    UPDATE deployment SET access_by_groups = ${byGroups}
    WHERE access_by_groups <> ${byGroups} RETURNING access_by_groups AS is`;
  if (changed.length === 0) return false;
  if (byGroups) return true;
  await sql(tx)`LOCK TABLE access_assignments IN SHARE ROW EXCLUSIVE MODE`;
  await sql(tx)`
    INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule)
    SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t), 'rule'
    FROM access_targets t
    WHERE t.access = 'assigned'
      AND EXISTS (SELECT FROM access_assignments x WHERE x.target_id = t.id AND x.group_id IS NOT NULL)
    ORDER BY t.org_id, t.id`;
  return true;
}
