/**
 * The decision of {@link decideReach} as SQL. At READ COMMITTED a statement that waited reads only
 * the rows again that it locks. So everything that admits is locked: the target FOR SHARE, because
 * a change updates it; the assignment and the membership FOR KEY SHARE, because a change deletes
 * them. The end of a group deletes the memberships and then the assignments, so that they are
 * locked in this order.
 */

import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The targets that a credential opens: the application of the client, the cluster, the role of AWS,
 * the installation of the GitHub App, or all groups of hosts of the organization.
 */
export type Reach = 'client' | 'cluster' | 'role' | 'installation' | 'hosts';

/** A row that a statement locks. */
export interface LockedRow {
  readonly name: SqlFragment;
  readonly selected: SqlFragment;
  readonly from: SqlFragment;
  readonly where: SqlFragment;
  readonly lock: SqlFragment;
}

/** The people of the requests. */
export const PEOPLE = fragment`ARRAY(SELECT of_user FROM asked)`;

/** The locked targets that admit only assigned people. */
export const ASSIGNED = fragment`ARRAY(SELECT id FROM target WHERE access = 'assigned')`;

/** The condition that groups of SCIM decide (SVC_ACCESS_BY_GROUPS). */
export const BY_GROUPS = fragment`(SELECT d.access_by_groups FROM deployment d)`;

/**
 * {@link BY_GROUPS} as of this moment, for a statement that has locked the target: a change of the
 * setting locks each target with an assigned group.
 */
const BY_GROUPS_NOW = fragment`access_by_groups_now()`;

/** The columns of a target `t` that the decision reads. */
const RULE = fragment`t.id, t.org_id, t.version, t.access, t.touch_within_seconds, t.models, t.user_verification`;

const HAS_CONDITIONS = hasConditionsSql(fragment`t`);

interface ReachSql {
  readonly selected: SqlFragment;
  readonly where: SqlFragment;
  /** The condition that the locked target `t` is the one of a request `k` of the user `a`. */
  readonly isOf: SqlFragment;
}

const REACHES: Readonly<Record<Reach, ReachSql>> = {
  client: {
    selected: fragment`${RULE}, t.client_id`,
    where: fragment`t.client_id = ANY (ARRAY(SELECT client_id FROM asked))`,
    isOf: fragment`t.client_id = k.client_id`,
  },
  cluster: {
    selected: fragment`${RULE}, t.client_id`,
    where: fragment`t.client_id = ANY (ARRAY(SELECT application_id FROM asked))`,
    isOf: fragment`t.client_id = k.application_id AND t.org_id = a.org_id`,
  },
  role: {
    selected: fragment`${RULE}, t.role_arn`,
    where: fragment`t.kind = 'aws_role' AND t.role_arn = ANY (ARRAY(SELECT role_arn FROM asked))
      AND t.org_id = ANY (ARRAY(SELECT org_id FROM account))`,
    isOf: fragment`t.role_arn = k.role_arn AND t.org_id = a.org_id`,
  },
  installation: {
    selected: fragment`${RULE}, t.installation_id`,
    where: fragment`t.installation_id = ANY (ARRAY(SELECT installation_id FROM asked))`,
    isOf: fragment`t.installation_id = k.installation_id AND t.org_id = a.org_id`,
  },
  hosts: {
    selected: fragment`${RULE}, t.name, t.hosts, t.logins`,
    where: hostGroupsOfPeople(fragment`t`),
    isOf: fragment`t.org_id = a.org_id AND (k.host IS NULL OR ${matchesHost(fragment`t`, fragment`k.host`)})`,
  },
};

/**
 * Returns the condition that a target is a group of hosts that may admit one of the people. The
 * assigned groups are found by the person, because an organization may have a thousand.
 */
export function hostGroupsOfPeople(target: SqlFragment): SqlFragment {
  return fragment`${target}.kind = 'host_group' AND ${target}.org_id = ANY (ARRAY(SELECT org_id FROM account))
    AND (${target}.access = 'everyone' OR ${target}.id = ANY (ARRAY(
      SELECT x.target_id FROM access_assignments x WHERE x.user_id = ANY (${PEOPLE})
      UNION ALL
      SELECT x.target_id FROM group_members m JOIN access_assignments x ON x.group_id = m.group_id
      WHERE m.user_id = ANY (${PEOPLE}))))`;
}

/**
 * The row of an organization with its rule about roles of AWS. A role that is added or changed
 * updates it, so that a statement which holds it has seen all roles.
 */
const ORGANIZATION: LockedRow = {
  name: fragment`organization`,
  selected: fragment`o.id, o.aws_roles, o.aws_role_required, o.aws_roles_version`,
  from: fragment`organizations o`,
  where: fragment`o.id = ANY (ARRAY(SELECT org_id FROM account))`,
  lock: fragment`FOR SHARE OF o`,
};

/**
 * Returns the rows that admit, in the order of locks: target, assignment of the person, assignment
 * of a group with the membership. If all targets admit everyone, the last two read nothing.
 */
export function rowsOfReach(reach: Reach): LockedRow[] {
  const { selected, where } = REACHES[reach];
  return [
    ...(reach === 'role' ? [ORGANIZATION] : []),
    {
      name: fragment`target`,
      selected,
      from: fragment`access_targets t`,
      where,
      lock: fragment`FOR SHARE OF t`,
    },
    {
      name: fragment`by_person`,
      selected: fragment`x.target_id, x.user_id`,
      from: fragment`access_assignments x`,
      where: fragment`x.target_id = ANY (${ASSIGNED}) AND x.user_id = ANY (${PEOPLE})`,
      lock: fragment`FOR KEY SHARE OF x`,
    },
    {
      name: fragment`by_group`,
      selected: fragment`x.target_id, m.user_id`,
      from: fragment`access_assignments x JOIN group_members m ON m.group_id = x.group_id`,
      where: fragment`x.target_id = ANY (${ASSIGNED}) AND m.user_id = ANY (${PEOPLE}) AND ${BY_GROUPS_NOW}`,
      lock: fragment`FOR KEY SHARE OF m, x`,
    },
  ];
}

/**
 * Writes the CTE `reached`: a row for each request and target, with the decision. `touched_at` is
 * the newest touch that fits the conditions, in seconds since 1970.
 */
export function reachedRows(reach: Reach): SqlFragment {
  const { selected, isOf } = REACHES[reach];
  const touch = fittingTouchSql(fragment`t`, fragment`s.touches`);
  return fragment`reached AS MATERIALIZED (
    SELECT k.n, ${selected},
      (t.access = 'everyone' OR (t.org_id = a.org_id AND (
        EXISTS (SELECT FROM by_person p WHERE p.target_id = t.id AND p.user_id = a.id)
        OR EXISTS (SELECT FROM by_group p WHERE p.target_id = t.id AND p.user_id = a.id)))) AS is_admitted,
      CASE WHEN ${HAS_CONDITIONS} THEN ${touch} END AS touched_at,
      CASE WHEN ${HAS_CONDITIONS} THEN ${isMetBy(fragment`t`, touch)} ELSE true END AS is_met
    FROM asked k JOIN account a ON a.id = k.of_user JOIN target t ON ${isOf}
    LEFT JOIN session s ON s.id = k.of_session AND s.user_id = a.id)`;
}

/**
 * Returns the join of a request `k` with its target `r`. For groups of hosts, of which a request
 * has many, `r` is their sum.
 */
export function joinReached(reach: Reach): SqlFragment {
  if (reach === 'hosts') return fragment`LEFT JOIN hosts r ON r.n = k.n`;
  const organization =
    reach === 'role' ? fragment`LEFT JOIN organization o ON o.id = a.org_id` : fragment``;
  return fragment`LEFT JOIN reached r ON r.n = k.n ${organization}`;
}

// `changed`: the assignments are as of the snapshot, the rule as of the lock. The next statement
// reads both.
const DENIAL_OF_TARGET = fragment`
  WHEN NOT r.is_admitted THEN CASE WHEN r.version = (SELECT v.version FROM access_targets v WHERE v.id = r.id)
    THEN 'not_assigned' ELSE 'changed' END
  WHEN NOT r.is_met THEN 'condition_unmet'`;

/**
 * The denials by the only target `r` of a request, as the branches of a CASE. Nothing is issued for
 * a target that is unknown, because every application and installation has a row. Without a row, a
 * role of AWS is free if the organization lists no roles.
 */
export const DENIALS_OF_REACH: Readonly<Record<Reach, SqlFragment>> = {
  client: fragment`WHEN r.id IS NULL AND c.kind IN ('application', 'kubernetes') AND c.org_id IS NOT NULL
    THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  cluster: fragment`WHEN r.id IS NULL THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  installation: fragment`WHEN r.id IS NULL THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  // `changed`: a role was added, changed or removed after the snapshot of this statement.
  role: fragment`
    WHEN a.org_id IS NOT NULL AND o.aws_roles_version IS DISTINCT FROM (
      SELECT v.aws_roles_version FROM organizations v WHERE v.id = a.org_id) THEN 'changed'
    WHEN k.role_arn IS NULL AND (o.aws_roles = 'listed' OR o.aws_role_required) THEN 'role_required'
    WHEN r.id IS NULL AND EXISTS (
      SELECT FROM access_targets u WHERE u.kind = 'aws_role' AND u.org_id = a.org_id AND u.role_arn = k.role_arn)
      THEN 'changed'
    WHEN r.id IS NULL AND k.role_arn IS NOT NULL AND o.aws_roles = 'listed' THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  hosts: fragment`
    WHEN k.host IS NOT NULL AND r.is_admitted AND NOT r.is_met THEN 'condition_unmet'
    WHEN NOT k.names <@ r.principals AND r.has_unmet THEN 'condition_unmet'
    WHEN k.host IS NOT NULL AND NOT r.is_admitted AND EXISTS (
      SELECT FROM access_targets h WHERE h.kind = 'host_group' AND h.org_id = a.org_id AND ${matchesHost(fragment`h`, fragment`k.host`)})
      THEN 'not_assigned'`,
};

/** The conditions of the target `r`, for the answer to a request that does not meet them. */
export const CONDITIONS_OF_REACHED = fragment`jsonb_build_object(
  'touchWithinSeconds', r.touch_within_seconds, 'models', r.models, 'userVerification', r.user_verification)`;

/** Returns the condition that a target has conditions. */
export function hasConditionsSql(target: SqlFragment): SqlFragment {
  return fragment`num_nonnulls(${target}.touch_within_seconds, ${target}.models, ${target}.user_verification) > 0`;
}

/**
 * Returns the newest touch that fits the conditions of a target, in seconds since 1970, or NULL.
 */
export function fittingTouchSql(target: SqlFragment, touches: SqlFragment): SqlFragment {
  return fragment`(SELECT max((x.value ->> CASE WHEN ${target}.user_verification IS NULL THEN 'at' ELSE 'uv' END)::float8)
    FROM jsonb_each(${touches}) x WHERE ${target}.models IS NULL OR (x.value -> 'fips')::boolean)`;
}

/** Returns the condition that a touch meets the conditions of a target now. */
export function isMetBy(target: SqlFragment, touch: SqlFragment): SqlFragment {
  return fragment`coalesce(${touch} >= CASE WHEN ${target}.touch_within_seconds IS NULL THEN '-infinity'::float8
    ELSE extract(epoch FROM now())::float8 - ${target}.touch_within_seconds END, false)`;
}

/**
 * Returns the condition that the patterns of a group match a host, as in ssh_config: one pattern
 * matches, and no pattern that begins with `!` does.
 */
export function matchesHost(target: SqlFragment, host: SqlFragment): SqlFragment {
  const like = fragment`translate(replace(replace(lower(ltrim(p, '!')), '%', '\\%'), '_', '\\_'), '*?', '%_')`;
  return fragment`coalesce((SELECT bool_or(p NOT LIKE '!%') AND bool_and(p NOT LIKE '!%')
    FROM unnest(${target}.hosts) p WHERE lower(${host}) LIKE ${like}), false)`;
}

/**
 * Returns the condition that a target `t` admits a user, without its conditions. It locks nothing:
 * it is for lists, for previews, and for what has to end. `OFFSET 0` keeps PostgreSQL from hashing
 * all assignments for one row.
 */
export function admits(target: SqlFragment, userId: SqlFragment): SqlFragment {
  return fragment`(${target}.access = 'everyone' OR (
    EXISTS (SELECT FROM users p WHERE p.id = ${userId} AND p.org_id = ${target}.org_id) AND (
      EXISTS (SELECT FROM access_assignments x WHERE x.target_id = ${target}.id AND x.user_id = ${userId} OFFSET 0)
      OR (${BY_GROUPS} AND EXISTS (
        SELECT FROM access_assignments x JOIN group_members m ON m.group_id = x.group_id
        WHERE x.target_id = ${target}.id AND m.user_id = ${userId} OFFSET 0)))))`;
}
