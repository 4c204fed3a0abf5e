import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { RECORDED, recordAudit } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { scimOperation, type ScimActor } from './scim-operation.js';

/** A group without its members, of which there may be 100,000. */
export interface DirectoryGroup {
  readonly id: string;
  readonly displayName: string;
  readonly externalId: string | null;
  /** The text in the entity tag. It changes with everything that clients see of the group. */
  readonly tag: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** The attributes of a group that a write sets. */
export interface GroupState {
  readonly displayName: string;
  readonly externalId: string | null;
}

/** A row of the table `groups`, with the version of the list of members. */
export interface GroupRow {
  id: string;
  display_name: string;
  external_id: string | null;
  version: string;
  member_version?: string | null;
  created_at: Date;
  updated_at: Date;
}

/**
 * The SQL of a number that rises if the members of the group `g` change without a write of the
 * group. For example, a member is deleted or gets a new name. The number is a part of the entity
 * tag.
 */
export const MEMBER_VERSION =
  '(SELECT v.version FROM group_member_versions v WHERE v.group_id = g.id)';

/**
 * The SQL of the time at which the group `g`, or its list of members, last changed. A list of
 * members can change without a write of the group.
 */
export const LAST_MODIFIED = `greatest(g.updated_at,
  (SELECT v.changed_at FROM group_member_versions v WHERE v.group_id = g.id))`;

/** Finds a group; undefined if the organization has no such group. */
export function findGroup(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<DirectoryGroup | undefined> {
  return readGroup(tx, orgId, id, fragment``);
}

/**
 * Locks the row of a group until the transaction ends, so that changes of one group happen one
 * after another. A statement that issues a credential to a member does not wait for this lock.
 * Returns undefined if the organization has no such group.
 */
export function lockGroup(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<DirectoryGroup | undefined> {
  return readGroup(tx, orgId, id, fragment`FOR NO KEY UPDATE OF groups`);
}

async function readGroup(
  tx: EntityManager,
  orgId: string,
  id: string,
  lock: SqlFragment,
): Promise<DirectoryGroup | undefined> {
  const [row] = await sql<GroupRow>(tx)`
    SELECT id, display_name, external_id, groups.version, created_at, v.version AS member_version,
           greatest(updated_at, v.changed_at) AS updated_at
    FROM groups LEFT JOIN group_member_versions v ON v.group_id = groups.id WHERE org_id = ${orgId} AND id = ${id} ${lock}`;
  return row && directoryGroup(row);
}

/**
 * Returns true if one of the ids is that of a group of the organization. A group cannot be a
 * member. So a write that adds such an id is refused, or the id is left out if the write also ends
 * access.
 */
export async function hasGroup(
  tx: EntityManager,
  orgId: string,
  ids: readonly string[],
): Promise<boolean> {
  const rows = await sql<{ id: string }>(tx)`
    SELECT id FROM groups WHERE org_id = ${orgId} AND id = ANY (${ids}::uuid[]) LIMIT 1`;
  return rows.length > 0;
}

/**
 * Adds a group without members, and the audit event.
 *
 * @throws DomainError uniqueness if the organization has a group of that name
 */
export async function insertGroup(
  tx: EntityManager,
  actor: ScimActor,
  group: GroupState,
): Promise<DirectoryGroup> {
  const id = newUuid();
  const record = scimOperation(actor, 'create', 'Group', id, { display_name: group.displayName });
  const [row] = await sql<GroupRow>(tx)`
    WITH made AS (
      INSERT INTO groups (id, org_id, display_name, external_id)
      VALUES (${id}, ${actor.orgId}, ${group.displayName}, ${group.externalId})
      ON CONFLICT DO NOTHING
      RETURNING id, display_name, external_id, version, created_at, updated_at
    ), audited AS (${recordAudit(record, fragment`FROM made`)})
    SELECT id, display_name, external_id, version, created_at, updated_at, ${RECORDED} FROM made`;
  if (!row) throw taken();
  return directoryGroup(row);
}

/**
 * Changes a group, whose row the caller has locked, and writes the audit event. A change of members
 * alone also makes a new version.
 *
 * @param audited more details of the audit event
 * @throws DomainError uniqueness
 */
export async function updateGroup(
  tx: EntityManager,
  actor: ScimActor,
  id: string,
  group: GroupState,
  audited: Readonly<Record<string, unknown>> = {},
): Promise<DirectoryGroup> {
  const record = scimOperation(actor, 'update', 'Group', id, audited);
  try {
    const [row] = await sql<GroupRow>(tx)`
      WITH changed AS (
        UPDATE groups SET display_name = ${group.displayName}, external_id = ${group.externalId},
               version = version + 1, updated_at = now()
        WHERE id = ${id} AND org_id = ${actor.orgId}
        RETURNING id, display_name, external_id, version, created_at, updated_at
      ), audited AS (${recordAudit(record, fragment`FROM changed`)})
      SELECT id, display_name, external_id, version, created_at, updated_at,
             (SELECT version FROM group_member_versions WHERE group_id = changed.id) AS member_version, ${RECORDED}
      FROM changed`;
    if (!row) throw new Error('a locked group is gone');
    return directoryGroup(row);
  } catch (error) {
    if (TAKEN.has(violatedConstraint(error))) throw taken();
    throw error;
  }
}

/** Removes a group, whose row the caller has locked, and writes the audit event. */
export async function removeGroup(
  tx: EntityManager,
  actor: ScimActor,
  { id, displayName }: DirectoryGroup,
): Promise<void> {
  const record = scimOperation(actor, 'delete', 'Group', id, { display_name: displayName });
  await sql(tx)`
    WITH gone AS (DELETE FROM groups WHERE id = ${id} AND org_id = ${actor.orgId} RETURNING id)
    ${recordAudit(record, fragment`FROM gone`)}`;
}

/**
 * The unique indexes on the names of groups. If a write violates one of them, the error is
 * `uniqueness`.
 */
const TAKEN: ReadonlySet<string | undefined> = new Set([
  'groups_display_name',
  'groups_display_name_key',
]);

function taken(): DomainError {
  return new DomainError('uniqueness', 'The displayName belongs to another group.');
}

/** Makes a {@link DirectoryGroup} from a row of the table `groups`. */
export function directoryGroup(row: GroupRow): DirectoryGroup {
  return {
    id: row.id,
    displayName: row.display_name,
    externalId: row.external_id,
    tag: Number(row.member_version ?? 0) > 0 ? `${row.version}-${row.member_version}` : row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
