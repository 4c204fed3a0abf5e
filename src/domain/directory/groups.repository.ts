import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/clock/random.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { sql } from '#platform/database/statements/sql.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ScimActor } from './scim-actor.js';

/** A group as SCIM keeps it. Its members are apart: there may be 100,000. */
export interface ScimGroup {
  readonly id: string;
  readonly displayName: string;
  readonly externalId: string | null;
  /** The version of all that is shown of it. */
  readonly tag: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** What a write makes of a group. */
export interface ScimGroupState {
  readonly displayName: string;
  readonly externalId: string | null;
}

/** A member as a group shows it. */
export interface ScimMember {
  readonly userId: string;
  readonly display: string;
}

/** A group as PostgreSQL answers it. */
export interface GroupRow {
  id: string;
  display_name: string;
  external_id: string | null;
  version: string;
  member_version?: string | null;
  created_at: Date;
  updated_at: Date;
}

/** What changed of its members without a write of the group: they were deleted, or have other names. */
export const MEMBER_VERSION =
  '(SELECT v.version FROM group_member_versions v WHERE v.group_id = g.id)';
/** Groups of an organization and who is in them. */
@Injectable()
export class ScimGroupsRepository {
  async find(tx: EntityManager, orgId: string, id: string): Promise<ScimGroup | undefined> {
    const [row] = await sql<GroupRow>(tx)`
      SELECT id, display_name, external_id, version, created_at, updated_at,
             (SELECT version FROM group_member_versions WHERE group_id = groups.id) AS member_version
      FROM groups WHERE org_id = ${orgId} AND id = ${id}`;
    return row && scimGroup(row);
  }

  /** A group, locked until the transaction ends: changes of one group follow each other. */
  async lock(tx: EntityManager, orgId: string, id: string): Promise<ScimGroup | undefined> {
    const [row] = await sql<GroupRow>(tx)`
      SELECT id, display_name, external_id, version, created_at, updated_at,
             (SELECT version FROM group_member_versions WHERE group_id = groups.id) AS member_version
      FROM groups WHERE org_id = ${orgId} AND id = ${id} FOR UPDATE OF groups`;
    return row && scimGroup(row);
  }

  /**
   * Adds a group, without members, and its audit row.
   *
   * @throws DomainError uniqueness when the organization has a group of that name
   */
  async insert(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    group: ScimGroupState,
  ): Promise<ScimGroup> {
    const id = newUuid();
    const details = {
      operation: 'create',
      resource_type: 'Group',
      resource_id: id,
      display_name: group.displayName,
      scim_token_id: tokenId,
    };
    const [row] = await sql<GroupRow>(tx)`
      WITH made AS (
        INSERT INTO groups (id, org_id, display_name, external_id)
        VALUES (${id}, ${orgId}, ${group.displayName}, ${group.externalId})
        ON CONFLICT DO NOTHING
        RETURNING id, display_name, external_id, version, created_at, updated_at
      ), audited AS (
        INSERT INTO audit_events (id, type, class, org_id, request_id, ip, user_agent, details)
        SELECT ${newUuid()}, 'scim_operation', 'admin', ${orgId}, ${origin.requestId}, ${origin.ip ?? null},
               ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
        FROM made
      )
      SELECT id, display_name, external_id, version, created_at, updated_at FROM made`;
    if (!row) throw taken();
    return scimGroup(row);
  }

  /**
   * Changes a group, whose row the caller has locked, and writes the audit row. A change of members alone is one, too.
   *
   * @throws DomainError uniqueness
   */
  async update(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    id: string,
    group: ScimGroupState,
  ): Promise<ScimGroup> {
    const details = {
      operation: 'update',
      resource_type: 'Group',
      resource_id: id,
      scim_token_id: tokenId,
    };
    try {
      const [row] = await sql<GroupRow>(tx)`
        WITH changed AS (
          UPDATE groups SET display_name = ${group.displayName}, external_id = ${group.externalId},
                 version = version + 1, updated_at = now()
          WHERE id = ${id} AND org_id = ${orgId}
          RETURNING id, display_name, external_id, version, created_at, updated_at
        ), audited AS (
          INSERT INTO audit_events (id, type, class, org_id, request_id, ip, user_agent, details)
          SELECT ${newUuid()}, 'scim_operation', 'admin', ${orgId}, ${origin.requestId}, ${origin.ip ?? null},
                 ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
          FROM changed
        )
        SELECT id, display_name, external_id, version, created_at, updated_at,
               (SELECT version FROM group_member_versions WHERE group_id = changed.id) AS member_version
        FROM changed`;
      if (!row) throw new Error('a locked group is gone');
      return scimGroup(row);
    } catch (error) {
      if (TAKEN.has(violatedConstraint(error))) throw taken();
      throw error;
    }
  }

  /** Removes a group, whose row the caller has locked, and writes the audit row. */
  async remove(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    { id, displayName }: ScimGroup,
  ): Promise<void> {
    const details = {
      operation: 'delete',
      resource_type: 'Group',
      resource_id: id,
      display_name: displayName,
      scim_token_id: tokenId,
    };
    await sql(tx)`
      WITH gone AS (DELETE FROM groups WHERE id = ${id} AND org_id = ${orgId} RETURNING id)
      INSERT INTO audit_events (id, type, class, org_id, request_id, ip, user_agent, details)
      SELECT ${newUuid()}, 'scim_operation', 'admin', ${orgId}, ${origin.requestId}, ${origin.ip ?? null},
             ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
      FROM gone`;
  }

  /**
   * Keeps people of the organization from being removed until the transaction ends, before it touches a membership: in the
   * order of their ids, as everybody who takes several.
   *
   * @returns those of the ids that are people of the organization
   */
  async holdPeople(
    tx: EntityManager,
    orgId: string,
    userIds: readonly string[],
  ): Promise<ReadonlySet<string>> {
    if (userIds.length === 0) return new Set();
    const rows = await sql<{ id: string }>(tx)`
      SELECT id FROM users WHERE org_id = ${orgId} AND id = ANY (${userIds}::uuid[]) ORDER BY id FOR KEY SHARE`;
    return new Set(rows.map(({ id }) => id));
  }

  /** Whether one of some ids is that of a group of the organization. */
  async hasGroup(tx: EntityManager, orgId: string, ids: readonly string[]): Promise<boolean> {
    const rows = await sql<{ id: string }>(tx)`
      SELECT id FROM groups WHERE org_id = ${orgId} AND id = ANY (${ids}::uuid[]) LIMIT 1`;
    return rows.length > 0;
  }

  /**
   * Puts people of the organization into a group; those who are there stay. The caller holds them.
   *
   * @returns how many were not there
   */
  async addMembers(
    tx: EntityManager,
    orgId: string,
    groupId: string,
    userIds: readonly string[],
  ): Promise<number> {
    const [row] = await sql<{ n: string }>(tx)`
      WITH added AS (
        INSERT INTO group_members (group_id, user_id)
        SELECT ${groupId}::uuid, id FROM users WHERE org_id = ${orgId} AND id = ANY (${userIds}::uuid[])
        ON CONFLICT DO NOTHING
        RETURNING user_id
      )
      SELECT count(*) AS n FROM added`;
    return Number(row?.n);
  }

  /** Takes people out of a group; those who are not there are none of its business. @returns how many were there */
  async removeMembers(
    tx: EntityManager,
    groupId: string,
    userIds: readonly string[],
  ): Promise<number> {
    const [row] = await sql<{ n: string }>(tx)`
      WITH gone AS (
        DELETE FROM group_members WHERE group_id = ${groupId} AND user_id = ANY (${userIds}::uuid[]) RETURNING user_id
      )
      SELECT count(*) AS n FROM gone`;
    return Number(row?.n);
  }

  /**
   * Takes members out of a group, {@link MOST_TAKEN} at most, but for some users who stay: no statement grows with a group. The caller
   * has locked the group, so that no member comes meanwhile.
   *
   * @param after the answer of the call before
   * @returns how many were taken, and the last member that was looked at: undefined when no member is behind that one
   */
  async takeMembers(
    tx: EntityManager,
    groupId: string,
    staying: readonly string[],
    after: string | undefined,
  ): Promise<{ readonly taken: number; readonly last: string | undefined }> {
    const [row] = await sql<{ last: string | null; taken: string }>(tx)`
      WITH batch AS MATERIALIZED (
        SELECT ctid AS place, user_id FROM group_members
        WHERE group_id = ${groupId} AND user_id > ${after ?? NOBODY}::uuid ORDER BY user_id LIMIT ${MOST_TAKEN}
      ), gone AS (
        DELETE FROM group_members
        WHERE ctid = ANY (ARRAY(SELECT place FROM batch WHERE user_id <> ALL (${staying}::uuid[])))
        RETURNING user_id
      )
      SELECT (SELECT count(*) FROM gone) AS taken,
             (SELECT user_id FROM batch ORDER BY user_id OFFSET ${MOST_TAKEN - 1}) AS last`;
    return { taken: Number(row?.taken), last: row?.last ?? undefined };
  }

  /** Whether a group has at most so many members. */
  async hasAtMost(tx: EntityManager, groupId: string, most: number): Promise<boolean> {
    const [row] = await sql<{ n: string }>(tx)`
      SELECT count(*) AS n FROM (SELECT FROM group_members WHERE group_id = ${groupId} LIMIT ${most + 1}) m`;
    return Number(row?.n) <= most;
  }

  /**
   * Members of a group, in an order that is theirs, some at a time: nobody holds 100,000 of them.
   *
   * @param after the id of the last one of the batch before
   */
  async members(
    tx: EntityManager,
    groupId: string,
    after: string | undefined,
    count: number,
  ): Promise<ScimMember[]> {
    const rows = await sql<{ user_id: string; display: string }>(tx)`
      WITH batch AS MATERIALIZED (
        SELECT user_id FROM group_members
        WHERE group_id = ${groupId} AND user_id > ${after ?? NOBODY}::uuid ORDER BY user_id LIMIT ${count}
      )
      SELECT m.user_id, coalesce(u.name, u.user_name, u.email, u.id::text) AS display
      FROM batch m JOIN users u ON u.id = m.user_id ORDER BY m.user_id`;
    return rows.map((row) => ({ userId: row.user_id, display: row.display }));
  }
}

/** The indexes that keep the names of groups apart. */
const TAKEN: ReadonlySet<string | undefined> = new Set([
  'groups_display_name',
  'groups_display_name_key',
]);

/** Members that one statement takes out of a group. */
export const MOST_TAKEN = 10_000;

/** Before every id. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

function taken(): DomainError {
  return new DomainError('uniqueness', 'The displayName belongs to another group.');
}

/** Maps a row of `groups`. */
export function scimGroup(row: GroupRow): ScimGroup {
  return {
    id: row.id,
    displayName: row.display_name,
    externalId: row.external_id,
    tag: Number(row.member_version ?? 0) > 0 ? `${row.version}-${row.member_version}` : row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
