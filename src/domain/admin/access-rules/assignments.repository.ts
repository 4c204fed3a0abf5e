import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Assignment, Target } from './target.js';

/**
 * The person or the group of one assignment, as the audit log names it. A person has an id and an
 * e-mail address, and a group an id alone.
 */
export interface Assigned {
  readonly user?: string;
  readonly email?: string | null;
  readonly group?: string;
}

/** The people and groups that a change assigned to a target, and those that it removed. */
export interface AssignmentChange {
  readonly assigned: readonly Assigned[];
  readonly removed: readonly Assigned[];
}

interface Row {
  user_id: string | null;
  group_id: string | null;
  email: string | null;
}

/**
 * Locks the rows of people in the order of their ids, so that they stay in an organization until
 * the transaction ends. The lock does not block sign-ins and the issuance of credentials. Returns
 * false if one of the ids is not that of a person of the organization.
 */
export async function holdPeople(
  tx: EntityManager,
  orgId: string,
  ids: readonly string[],
): Promise<boolean> {
  const held = await sql<{ id: string }>(tx)`
    SELECT id FROM users WHERE id = ANY (${ids}::uuid[]) AND org_id = ${orgId} ORDER BY id FOR KEY SHARE`;
  return held.length === new Set(ids).size;
}

/**
 * Locks the rows of groups, so that they stay until the transaction ends. Returns false if one of
 * the ids is not that of a group of the organization.
 */
export async function holdGroups(
  tx: EntityManager,
  orgId: string,
  ids: readonly string[],
): Promise<boolean> {
  const held = await sql<{ id: string }>(tx)`
    SELECT id FROM groups WHERE id = ANY (${ids}::uuid[]) AND org_id = ${orgId} ORDER BY id FOR KEY SHARE`;
  return held.length === new Set(ids).size;
}

/**
 * Lists the assignments of a target: the people by their e-mail addresses, then the groups by their
 * names.
 */
export async function listAssignments(tx: EntityManager, { id }: Target): Promise<Assignment[]> {
  const rows = await sql<Row & { name: string | null; group_name: string | null }>(tx)`
    SELECT x.user_id, x.group_id, u.email, u.name, g.display_name AS group_name
    FROM access_assignments x LEFT JOIN users u ON u.id = x.user_id LEFT JOIN groups g ON g.id = x.group_id
    WHERE x.target_id = ${id}
    ORDER BY x.group_id IS NOT NULL, u.email, lower(g.display_name), x.id`;
  return rows.flatMap((row): Assignment[] => {
    if (row.user_id !== null) return [{ user: row.user_id, email: row.email, name: row.name }];
    return row.group_id === null ? [] : [{ group: row.group_id, name: row.group_name ?? '' }];
  });
}

/**
 * Replaces the assignments of a locked target. An assignment that stays keeps its row, so that the
 * issuance of a credential by this assignment does not wait.
 *
 * The caller first sets the new rule of the target, because the database trigger on removed
 * assignments reads it. If the target then admits everyone, no access ends.
 */
export async function replaceAssignments(
  tx: EntityManager,
  { id }: Target,
  users: readonly string[],
  groups: readonly string[],
): Promise<AssignmentChange> {
  const removed = await sql<Row>(tx)`
    DELETE FROM access_assignments x
    WHERE x.target_id = ${id} AND (x.user_id = ANY (${users}::uuid[])) IS NOT TRUE
      AND (x.group_id = ANY (${groups}::uuid[])) IS NOT TRUE
    RETURNING x.user_id, x.group_id, (SELECT u.email FROM users u WHERE u.id = x.user_id) AS email`;
  const assigned = await sql<Row>(tx)`
    INSERT INTO access_assignments (target_id, user_id, group_id)
    SELECT ${id}::uuid, u, NULL::uuid FROM unnest(${users}::uuid[]) u
    UNION ALL SELECT ${id}::uuid, NULL, g FROM unnest(${groups}::uuid[]) g
    ON CONFLICT DO NOTHING
    RETURNING user_id, group_id, (SELECT u.email FROM users u WHERE u.id = user_id) AS email`;
  return { assigned: assigned.map(named), removed: removed.map(named) };
}

/**
 * Returns the person or group of an assignment for the audit log. Of a group, the log gets only the
 * id.
 */
function named({ user_id: user, group_id: group, email }: Row): Assigned {
  return user === null ? { ...(group !== null && { group }) } : { user, email };
}

/** A group of the organization that an admin can assign to a target. */
export interface FoundGroup {
  readonly id: string;
  readonly name: string;
}

/**
 * Finds at most `limit` groups of an organization whose names begin with a text, sorted by name.
 */
export function findGroups(
  tx: EntityManager,
  orgId: string,
  text: string,
  limit: number,
): Promise<FoundGroup[]> {
  return sql<FoundGroup>(tx)`
    SELECT id, display_name AS name FROM groups
    WHERE org_id = ${orgId} AND starts_with(lower(display_name), lower(${text}))
    ORDER BY lower(display_name), id LIMIT ${limit}`;
}

/**
 * The people and groups that an admin named in a form, and the texts that name no person or group.
 */
export interface Named {
  readonly people: readonly { readonly id: string; readonly email: string | null }[];
  readonly groups: readonly FoundGroup[];
  readonly unknown: readonly string[];
}

/**
 * Finds people of an organization by their whole e-mail addresses, and groups by their whole names.
 */
export async function findNamed(
  tx: EntityManager,
  orgId: string,
  addresses: readonly string[],
  names: readonly string[],
): Promise<Named> {
  const wanted = addresses.map((address) => address.toLowerCase());
  const people = await sql<{ id: string; email: string | null }>(tx)`
    SELECT id, email FROM users WHERE org_id = ${orgId} AND email = ANY (${wanted}::text[]) ORDER BY email`;
  const groups = await sql<FoundGroup & { key: string }>(tx)`
    SELECT g.id, g.display_name AS name, n.name AS key
    FROM unnest(${names}::text[]) n (name)
    JOIN groups g ON g.org_id = ${orgId} AND lower(g.display_name COLLATE "C") = lower(n.name COLLATE "C")
    ORDER BY n.name`;
  const known = new Set([...people.map(({ email }) => email), ...groups.map(({ key }) => key)]);
  const unknown = [
    ...wanted.filter((address) => !known.has(address)),
    ...names.filter((name) => !known.has(name)),
  ];
  return { people, groups: groups.map(({ id, name }) => ({ id, name })), unknown };
}
