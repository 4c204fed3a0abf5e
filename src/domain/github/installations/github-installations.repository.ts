import type { GitHubInstallation } from '../app/answers.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** An installation of the GitHub App that an organization linked. */
export interface LinkedInstallation {
  readonly id: number;
  readonly orgId: string;
  /** The `login` (user name) of the account at GitHub. */
  readonly owner: string;
  readonly repositorySelection: 'all' | 'selected';
  readonly suspended: boolean;
  readonly linkedAt: Date;
}

interface Row {
  id: string;
  org_id: string;
  owner: string;
  repository_selection: 'all' | 'selected';
  suspended: boolean;
  linked_at: Date;
}

/** Lists the linked installations of an organization, sorted by their owners. */
export async function listInstallations(
  tx: EntityManager,
  orgId: string,
): Promise<LinkedInstallation[]> {
  const rows = await sql<Row>(tx)`
    SELECT id, org_id, owner, repository_selection, suspended_at IS NOT NULL AS suspended, linked_at
    FROM github_installations WHERE org_id = ${orgId} ORDER BY lower(owner), id`;
  return rows.map(linkedInstallation);
}

/**
 * Links an installation to an organization. If another organization has linked it, nothing changes.
 * If the same organization links it again, the row is updated.
 *
 * @returns false if another organization has linked the installation
 */
export async function linkInstallation(
  tx: EntityManager,
  { id, accountId, owner, repositorySelection, suspended }: GitHubInstallation,
  by: { readonly orgId: string; readonly userId: string; readonly now: Date },
): Promise<boolean> {
  const linked = await sql<{ id: string }>(tx)`
    INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, suspended_at, changed_at, linked_by)
    VALUES (${id}, ${by.orgId}, ${accountId}, ${owner}, ${repositorySelection}, ${suspended ? by.now : null},
            '-infinity', ${by.userId})
    ON CONFLICT (id) DO UPDATE
    SET owner = EXCLUDED.owner, repository_selection = EXCLUDED.repository_selection,
        suspended_at = EXCLUDED.suspended_at
    WHERE github_installations.org_id = EXCLUDED.org_id
    RETURNING id`;
  return linked.length === 1;
}

/** A change of an installation that a webhook of GitHub reports. */
export interface InstallationChange {
  readonly owner: string;
  readonly repositorySelection: 'all' | 'selected';
  /**
   * True if the installation is now suspended, false if it is resumed; undefined if the webhook
   * does not state it.
   */
  readonly suspended: boolean | undefined;
  /** The time of the change at GitHub; undefined if the webhook has none. */
  readonly changedAt: Date | undefined;
}

/**
 * Changes a linked installation. Webhooks may arrive in any order, so a change that is older than
 * the last applied one is ignored.
 *
 * @returns the changed installation; undefined if no organization has linked it, or if a newer
 *   change was applied before
 */
export async function changeInstallation(
  tx: EntityManager,
  id: number,
  { owner, repositorySelection, suspended, changedAt }: InstallationChange,
): Promise<LinkedInstallation | undefined> {
  const [row] = await sql<Row>(tx)`
    UPDATE github_installations
    SET owner = ${owner}, repository_selection = ${repositorySelection},
        suspended_at = CASE WHEN ${suspended ?? null}::boolean IS NULL THEN suspended_at
                            WHEN ${suspended ?? null}::boolean THEN coalesce(suspended_at, now()) END,
        changed_at = greatest(changed_at, ${changedAt ?? null}::timestamptz)
    WHERE id = ${id} AND (${changedAt ?? null}::timestamptz IS NULL OR changed_at <= ${changedAt ?? null}::timestamptz)
    RETURNING id, org_id, owner, repository_selection, suspended_at IS NOT NULL AS suspended, linked_at`;
  return row && linkedInstallation(row);
}

/**
 * Stores the new `login` (user name) of an account that was renamed at GitHub, in every
 * installation of the account.
 */
export async function renameOwner(
  tx: EntityManager,
  accountId: number,
  owner: string,
): Promise<void> {
  await sql(tx)`UPDATE github_installations SET owner = ${owner} WHERE account_id = ${accountId}`;
}

/**
 * Removes the link of an installation. If a transaction that issues a token has locked the row, the
 * removal waits for it. A later transaction finds no installation and issues nothing.
 *
 * @param orgId the organization that must have linked the installation; null for any
 * @returns the removed installation; undefined if there is none
 */
export async function removeInstallation(
  tx: EntityManager,
  id: number,
  orgId: string | null,
): Promise<LinkedInstallation | undefined> {
  const [row] = await sql<Row>(tx)`
    DELETE FROM github_installations WHERE id = ${id} AND (${orgId}::uuid IS NULL OR org_id = ${orgId}::uuid)
    RETURNING id, org_id, owner, repository_selection, suspended_at IS NOT NULL AS suspended, linked_at`;
  return row && linkedInstallation(row);
}

function linkedInstallation(row: Row): LinkedInstallation {
  return {
    id: Number(row.id),
    orgId: row.org_id,
    owner: row.owner,
    repositorySelection: row.repository_selection,
    suspended: row.suspended,
    linkedAt: row.linked_at,
  };
}
