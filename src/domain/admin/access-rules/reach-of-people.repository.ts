import { decideReach, type ReachDecision } from '#domain/access/reach/decision.js';
import { admits, BY_GROUPS } from '#domain/access/reach/reach.repository.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Target } from './target.js';
import { listTargets, type TargetRange, type TargetRow } from './targets.repository.js';

/** The most people that are counted. If there are more, the count is this number plus one. */
export const MOST_COUNTED = 10_000;

/** A person as the lists and exports for admins show the person. */
export interface ListedPerson {
  readonly id: string;
  readonly email: string | null;
  readonly name: string | null;
}

/**
 * A page of the people that a target admits. `next` is the id after which the next page begins;
 * null on the last page.
 */
export interface AdmittedPeople {
  readonly people: readonly ListedPerson[];
  readonly next: string | null;
}

/** The facts about a person that decide if a target admits the person. */
export interface PersonFacts {
  readonly orgId: string;
  readonly active: boolean;
  readonly isAssigned: boolean;
  readonly isInGroup: boolean;
}

/** Returns the SQL condition that an assignment of a target `t` names a user. */
function isAssigned(userId: SqlFragment): SqlFragment {
  return fragment`EXISTS (
    SELECT FROM access_assignments x WHERE x.target_id = t.id AND x.user_id = ${userId})`;
}

/** Returns the SQL condition that a group to which a user belongs is assigned to a target `t`. */
function isInGroup(userId: SqlFragment): SqlFragment {
  return fragment`(${BY_GROUPS} AND EXISTS (
    SELECT FROM access_assignments x JOIN group_members m ON m.group_id = x.group_id
    WHERE x.target_id = t.id AND m.user_id = ${userId}))`;
}

/**
 * Reads the facts of a person that decide about a target; undefined if the organization has no such
 * person.
 */
export async function readFacts(
  tx: EntityManager,
  orgId: string,
  { id }: Target,
  userId: string,
): Promise<PersonFacts | undefined> {
  const user = fragment`u.id`;
  const [facts] = await sql<PersonFacts>(tx)`
    SELECT u.org_id AS "orgId", u.active, ${isAssigned(user)} AS "isAssigned", ${isInGroup(user)} AS "isInGroup"
    FROM users u JOIN access_targets t ON t.id = ${id}
    WHERE u.id = ${userId} AND u.org_id = ${orgId}`;
  return facts;
}

/** A row of a target, with the facts that decide if the target admits one person. */
export interface ReachRow extends TargetRow {
  is_assigned: boolean;
  is_in_group: boolean;
}

/**
 * Lists targets, each with the facts that decide if it admits one person.
 *
 * @param onlyReached leaves out targets that do not admit the person
 */
export function listReach(
  tx: EntityManager,
  orgId: string,
  { id, active }: { readonly id: string; readonly active: boolean },
  range: TargetRange,
  onlyReached: boolean,
): Promise<ReachRow[]> {
  const user = fragment`${id}::uuid`;
  return listTargets<ReachRow>(
    tx,
    orgId,
    range,
    fragment`, ${isAssigned(user)} AS is_assigned, ${isInGroup(user)} AS is_in_group`,
    onlyReached ? fragment`${active} AND ${admits(fragment`t`, user)}` : undefined,
  );
}

/**
 * Explains if the rule of a target admits a person. The conditions of the rule, such as the age of
 * the last touch of the security key, are not checked here. They are checked when a credential is
 * issued.
 */
export function decisionOf(orgId: string, target: Target, facts: PersonFacts): ReachDecision {
  const { access, conditions } = target;
  return decideReach(
    {
      target: { orgId, access, ...conditions },
      person: { orgId: facts.orgId, active: facts.active },
      isAssigned: facts.isAssigned,
      isInGroup: facts.isInGroup,
      touches: null,
    },
    0, // No time is needed, because only the conditions depend on it, and they are not checked.
  );
}

/**
 * Lists the active people that a target admits, in the order of their ids. The statement reads at
 * most one page of each assigned group, beginning after the last id of the previous page. So a
 * large group does not slow it down.
 */
export async function listAdmitted(
  tx: EntityManager,
  orgId: string,
  target: Target,
  { after, limit }: { readonly after?: string | undefined; readonly limit: number },
): Promise<AdmittedPeople> {
  const most = limit + 1;
  const from = after ?? '00000000-0000-0000-0000-000000000000';
  const candidates =
    target.access === 'everyone'
      ? fragment`SELECT u.id AS user_id FROM users u
          WHERE u.org_id = ${orgId} AND u.id > ${from}::uuid ORDER BY u.id LIMIT ${most}`
      : fragment`SELECT c.user_id FROM (
          (SELECT x.user_id FROM access_assignments x
           WHERE x.target_id = ${target.id} AND x.user_id > ${from}::uuid ORDER BY x.user_id LIMIT ${most})
          UNION ALL
          SELECT m.user_id FROM access_assignments x CROSS JOIN LATERAL (
            SELECT m.user_id FROM group_members m WHERE m.group_id = x.group_id AND m.user_id > ${from}::uuid
            ORDER BY m.user_id LIMIT ${most}) m
          WHERE x.target_id = ${target.id} AND x.group_id IS NOT NULL AND ${BY_GROUPS}
        ) c GROUP BY c.user_id ORDER BY c.user_id LIMIT ${most}`;
  const rows = await sql<ListedPerson & { is_shown: boolean }>(tx)`
    SELECT c.user_id AS id, u.email, u.name, u.active AND u.org_id = ${orgId} AS is_shown
    FROM (${candidates}) c JOIN users u ON u.id = c.user_id ORDER BY c.user_id`;
  const part = rows.slice(0, limit);
  return {
    people: part.filter((row) => row.is_shown).map(({ id, email, name }) => ({ id, email, name })),
    next: rows.length > limit ? (part.at(-1)?.id ?? null) : null,
  };
}

/**
 * The people that a rule admits: everyone, none, or the people and the members of groups that the
 * rule names.
 */
export type PeopleOfRule =
  'everyone' | 'no one' | { readonly users: readonly string[]; readonly groups: readonly string[] };

/** The people that one of two rules admits and the other does not. */
export interface DifferentPeople {
  /**
   * The number of people that only one of the two rules admits; {@link MOST_COUNTED} plus one if
   * there are more.
   */
  readonly count: number;
  /** The ids of the first people that only one of the two rules admits. */
  readonly ids: readonly string[];
}

/**
 * Finds the active people of an organization that one rule admits and another rule does not, for
 * the preview of a change.
 *
 * @param most the most ids that it returns
 */
export async function onlyAdmittedBy(
  tx: EntityManager,
  orgId: string,
  rule: PeopleOfRule,
  other: PeopleOfRule,
  most: number,
): Promise<DifferentPeople> {
  if (rule === 'no one' || other === 'everyone') return { count: 0, ids: [] };
  const [found] = await sql<DifferentPeople>(tx)`
    WITH found AS MATERIALIZED (
      SELECT u.id FROM users u
      WHERE u.org_id = ${orgId} AND u.active AND ${isCandidate(rule)} AND NOT ${isOf(other)}
      LIMIT ${MOST_COUNTED + 1})
    SELECT (SELECT count(*)::int FROM found) AS count,
           ARRAY(SELECT f.id FROM found f ORDER BY f.id LIMIT ${most}) AS ids`;
  return found ?? { count: 0, ids: [] };
}

/** Counts the active people of an organization that a rule admits, up to {@link MOST_COUNTED}. */
export async function countOf(
  tx: EntityManager,
  orgId: string,
  rule: PeopleOfRule,
): Promise<number> {
  return (await onlyAdmittedBy(tx, orgId, rule, 'no one', 0)).count;
}

/**
 * Returns the SQL condition that a rule admits a user `u`, in a form that lists the ids of the
 * users. It is for a statement that finds its users by this condition.
 */
function isCandidate(rule: PeopleOfRule): SqlFragment {
  if (typeof rule === 'string') return fragment`${rule === 'everyone'}`;
  return fragment`u.id IN (
    SELECT unnest(${rule.users}::uuid[])
    UNION SELECT m.user_id FROM group_members m WHERE m.group_id = ANY (${rule.groups}::uuid[]) AND ${BY_GROUPS})`;
}

/**
 * Returns the SQL condition that a rule admits a user `u`, in a form that is tested for each user.
 * It is for a statement that finds its users by another condition.
 */
function isOf(rule: PeopleOfRule): SqlFragment {
  if (typeof rule === 'string') return fragment`${rule === 'everyone'}`;
  return fragment`(u.id = ANY (${rule.users}::uuid[]) OR (${BY_GROUPS} AND EXISTS (
    SELECT FROM group_members m WHERE m.user_id = u.id AND m.group_id = ANY (${rule.groups}::uuid[]))))`;
}

/**
 * Returns the names and e-mail addresses of the people with the given ids, in the order of the ids.
 * An id that belongs to no user is left out.
 */
export function namesOf(tx: EntityManager, ids: readonly string[]): Promise<ListedPerson[]> {
  return sql<ListedPerson>(tx)`
    SELECT id, email, name FROM users WHERE id = ANY (${ids}::uuid[]) ORDER BY id`;
}
