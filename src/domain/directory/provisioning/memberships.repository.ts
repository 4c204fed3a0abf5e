import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql, SqlFragment } from '#platform/database/statements/sql.js';
import { shownName } from './directory-user.js';

const SHOWN_NAME = new SqlFragment([shownName('u')], []);

/** A member of a group, with the name under which SCIM shows the member. */
export interface GroupMember {
  readonly userId: string;
  readonly display: string;
}

/** The most members that one statement reads or removes, so that the statement stays short. */
export const MOST_TAKEN = 10_000;

/**
 * The lowest possible UUID, which comes before every other id, so that a list can start after it.
 */
const LOWEST_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Stores the memberships of users in groups. No statement reads or removes all members of a large
 * group, so that none takes long.
 */
@Injectable()
export class MembershipsRepository {
  /**
   * Locks users of the organization against removal until the transaction ends. A change of
   * memberships calls it first. The rows are locked in the order of their ids, so that two
   * transactions do not deadlock.
   *
   * @returns the ids that belong to users of the organization
   */
  async lockUsers(
    tx: EntityManager,
    orgId: string,
    userIds: readonly string[],
  ): Promise<ReadonlySet<string>> {
    if (userIds.length === 0) return new Set();
    const rows = await sql<{ id: string }>(tx)`
      SELECT id FROM users WHERE org_id = ${orgId} AND id = ANY (${userIds}::uuid[]) ORDER BY id FOR KEY SHARE`;
    return new Set(rows.map(({ id }) => id));
  }

  /**
   * Adds users of the organization to a group, and ignores users who are members already. The
   * caller has locked the users.
   *
   * @returns the number of added members
   */
  async add(
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

  /**
   * Removes users from a group, and ignores users who are no members.
   *
   * @returns the number of removed members
   */
  async remove(tx: EntityManager, groupId: string, userIds: readonly string[]): Promise<number> {
    const [row] = await sql<{ n: string }>(tx)`
      WITH gone AS (
        DELETE FROM group_members WHERE group_id = ${groupId} AND user_id = ANY (${userIds}::uuid[]) RETURNING user_id
      )
      SELECT count(*) AS n FROM gone`;
    return Number(row?.n);
  }

  /**
   * Reads the next {@link MOST_TAKEN} members of a group, and removes those that are not in
   * `staying`. So the time of a statement does not depend on the size of the group. The caller has
   * locked the group, so that no member is added between two calls.
   *
   * @param after the `last` of the previous call; undefined for the first call
   * @returns `removed`: the number of removed members; `last`: the last member that was read, or
   *   undefined if no member follows
   */
  async removeBatch(
    tx: EntityManager,
    groupId: string,
    staying: readonly string[],
    after: string | undefined,
  ): Promise<{ readonly removed: number; readonly last: string | undefined }> {
    const [row] = await sql<{ last: string | null; taken: string }>(tx)`
      WITH batch AS MATERIALIZED (
        SELECT ctid AS place, user_id FROM group_members
        WHERE group_id = ${groupId} AND user_id > ${after ?? LOWEST_ID}::uuid ORDER BY user_id LIMIT ${MOST_TAKEN}
      ), gone AS (
        DELETE FROM group_members
        WHERE ctid = ANY (ARRAY(SELECT place FROM batch WHERE user_id <> ALL (${staying}::uuid[])))
        RETURNING user_id
      )
      SELECT (SELECT count(*) FROM gone) AS taken,
             (SELECT user_id FROM batch ORDER BY user_id OFFSET ${MOST_TAKEN - 1}) AS last`;
    return { removed: Number(row?.taken), last: row?.last ?? undefined };
  }

  /** Returns true if a group has at most `most` members. */
  async hasAtMost(tx: EntityManager, groupId: string, most: number): Promise<boolean> {
    const [row] = await sql<{ n: string }>(tx)`
      SELECT count(*) AS n FROM (SELECT FROM group_members WHERE group_id = ${groupId} LIMIT ${most + 1}) m`;
    return Number(row?.n) <= most;
  }

  /**
   * Lists members of a group in the order of their ids, one batch at a time, so that no process
   * holds 100,000 members in memory.
   *
   * @param after the id of the last member of the previous batch; undefined for the first batch
   */
  async list(
    tx: EntityManager,
    groupId: string,
    after: string | undefined,
    count: number,
  ): Promise<GroupMember[]> {
    const rows = await sql<{ user_id: string; display: string }>(tx)`
      WITH batch AS MATERIALIZED (
        SELECT user_id FROM group_members
        WHERE group_id = ${groupId} AND user_id > ${after ?? LOWEST_ID}::uuid ORDER BY user_id LIMIT ${count}
      )
      SELECT m.user_id, ${SHOWN_NAME} AS display
      FROM batch m JOIN users u ON u.id = m.user_id ORDER BY m.user_id`;
    return rows.map((row) => ({ userId: row.user_id, display: row.display }));
  }
}
