/**
 * The decision of `decideReach` (`decision.ts`) as SQL. A part of it is in the database functions
 * `is_assigned`, `fitting_touch` and `reach_of_hosts` (migrations
 * `1764000020000-reach-of-hosts.sql` and `1764990030000-reach-of-one-request.sql`).
 *
 * At READ COMMITTED, a statement that waited for a lock reads only the locked rows again, so the
 * other rows may be out of date. To notice this, the statement locks one row of `access_versions`.
 * Every change of a target, an assignment or a membership updates this row as its last step. If the
 * locked version differs from the version in the snapshot of the statement, the statement denies
 * with `changed`. A second statement then decides.
 */

import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The targets that a credential opens. `client` is the application of the client, and `hosts` is
 * all groups of hosts of the organization.
 */
export type Reach = 'client' | 'cluster' | 'role' | 'installation' | 'hosts';

/**
 * A row that a statement locks, with the SQL that selects it for one request `k`. The SQL may also
 * read the rows that are locked before it.
 */
export interface LockedRow {
  /** The name of the row in the statement, such as `a`. */
  readonly alias: SqlFragment;
  /** The columns that the statement reads, each with its SQL. The first one is never NULL. */
  readonly selected: Readonly<Record<string, SqlFragment>>;
  readonly from: SqlFragment;
  readonly where: SqlFragment;
  readonly lock: SqlFragment;
  /** True if a request may find several such rows. All are locked, and one is enough. */
  readonly isOneOfMany?: boolean;
}

/**
 * The SQL condition that the membership of a SCIM group can open a target (SVC_ACCESS_BY_GROUPS).
 */
export const BY_GROUPS = fragment`(SELECT d.access_by_groups FROM deployment d)`;

/** The values of {@link Reach} by which a credential opens exactly one target. */
export type OneTarget = Exclude<Reach, 'hosts'>;

/**
 * The SQL conditions by which a request `k` names its target `t`, for each kind of credential. `a`
 * is the user of the request, and `c` the client.
 */
const IS_OF: Readonly<Record<OneTarget, SqlFragment>> = {
  client: fragment`t.client_id = k.client_id AND t.org_id = c.org_id`,
  cluster: fragment`t.client_id = k.application_id AND t.org_id = a.org_id`,
  role: fragment`t.kind = 'aws_role' AND t.role_arn = k.role_arn AND t.org_id = a.org_id`,
  installation: fragment`t.installation_id = k.installation_id AND t.org_id = a.org_id`,
};

/**
 * Returns the row that holds the version of the access rules of the organization that owns the
 * target. By the version, a statement notices a change of the rules that it has not seen. It locks
 * the row after all other rows, so that no rule can change between this lock and the decision.
 */
export function rowOfReach(reach: Reach): LockedRow {
  return {
    alias: fragment`w`,
    selected: { version: fragment`n.version` },
    from: fragment`access_versions n`,
    where: fragment`n.org_id = ${organizationOf(reach)}`,
    lock: fragment`FOR SHARE OF n`,
  };
}

/**
 * Returns the SQL that joins a request `k` with its target `r`. A request for groups of hosts has
 * many targets, so its `r` is one row that sums them up (SQL function `reach_of_hosts`). All
 * requests of a statement share one call of this function. So the call reads the rows of the
 * subquery `locked`, which has all requests with their locked rows. `OFFSET 0` makes PostgreSQL
 * look each target up in an index.
 */
export function joinReached(reach: Reach): SqlFragment {
  if (reach === 'hosts') {
    return fragment`LEFT JOIN reach_of_hosts(ARRAY(
      SELECT (k.n, k.a_id, k.a_org_id, k.s_touches, k.names, k.host)::asked_hosts
      FROM locked k WHERE k.a_id IS NOT NULL AND k.s_id IS NOT NULL)) r ON r.n = k.n`;
  }
  const organization =
    reach === 'role' ? fragment`LEFT JOIN organizations o ON o.id = a.org_id` : fragment``;
  return fragment`LEFT JOIN LATERAL (
    SELECT t.id, t.org_id, t.access, t.touch_within_seconds, t.models, t.user_verification
    FROM access_targets t WHERE a.id IS NOT NULL AND ${IS_OF[reach]} OFFSET 0) r ON true ${organization}`;
}

/**
 * Returns the SQL of the id of the organization that owns the targets of a request. For `client` it
 * is the organization of the client, otherwise that of the user.
 */
function organizationOf(reach: Reach): SqlFragment {
  return reach === 'client' ? fragment`c.org_id` : fragment`a.org_id`;
}

/**
 * Returns the branch of a CASE that denies with `changed`. It applies if the access rules of the
 * organization changed after the snapshot of the statement. It also applies if a batch has skipped
 * the version of the rules, because another transaction had locked it. A second statement then
 * reads everything again.
 */
export function denialOfChange(reach: Reach): SqlFragment {
  const org = organizationOf(reach);
  return fragment`WHEN ${org} IS NOT NULL AND (w.version IS NULL OR w.version <> (
    SELECT n.version FROM access_versions n WHERE n.org_id = ${org})) THEN 'changed'`;
}

const DENIAL_OF_TARGET = fragment`
  WHEN NOT (r.access = 'everyone' OR coalesce(r.org_id = a.org_id, false) AND is_assigned(r.id, a.id)) THEN 'not_assigned'
  WHEN ${hasConditionsSql(fragment`r`)} AND NOT ${isMetBy(fragment`r`, fittingTouchSql(fragment`r`, fragment`s.touches`))}
    THEN 'condition_unmet'`;

/**
 * The denials that depend on the target `r` of a request, as the branches of a CASE. An application
 * or installation always has a row in `access_targets`, so nothing is issued for one without a row.
 * An AWS role without a row is denied only if the organization lists its roles.
 */
export const DENIALS_OF_REACH: Readonly<Record<Reach, SqlFragment>> = {
  client: fragment`WHEN r.id IS NULL AND c.kind IN ('application', 'kubernetes') AND c.org_id IS NOT NULL
    THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  cluster: fragment`WHEN r.id IS NULL THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  installation: fragment`WHEN r.id IS NULL THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  role: fragment`
    WHEN k.role_arn IS NULL AND (o.aws_roles = 'listed' OR o.aws_role_required) THEN 'role_required'
    WHEN r.id IS NULL AND k.role_arn IS NOT NULL AND o.aws_roles = 'listed' THEN 'not_assigned' ${DENIAL_OF_TARGET}`,
  hosts: fragment`
    WHEN k.host IS NOT NULL AND r.is_admitted AND NOT r.is_met THEN 'condition_unmet'
    WHEN NOT k.names <@ r.principals AND r.has_unmet THEN 'condition_unmet'
    WHEN r.is_closed THEN 'not_assigned'`,
};

/**
 * Returns the conditions of a target as JSON, so that the error for a request that does not meet
 * them can name them.
 */
export function conditionsOf(target: SqlFragment): SqlFragment {
  return fragment`jsonb_build_object('touchWithinSeconds', ${target}.touch_within_seconds,
    'models', ${target}.models, 'userVerification', ${target}.user_verification)`;
}

/** Returns the SQL condition that a target has a condition for the touch of a security key. */
export function hasConditionsSql(target: SqlFragment): SqlFragment {
  return fragment`num_nonnulls(${target}.touch_within_seconds, ${target}.models, ${target}.user_verification) > 0`;
}

/**
 * Returns the SQL of the time, in seconds since 1970, of the newest touch by a key that the
 * conditions of a target accept. It is NULL if there is none. The age of the touch is not checked.
 *
 * @param touches the column `touches` of a session, as jsonb
 */
export function fittingTouchSql(target: SqlFragment, touches: SqlFragment): SqlFragment {
  return fragment`fitting_touch(${touches}, ${target}.models, ${target}.user_verification)`;
}

/**
 * Returns the SQL condition that a touch of a security key is not older than the target allows now.
 * It is false if the touch is NULL.
 *
 * @param touch the time of the touch, in seconds since 1970
 */
export function isMetBy(target: SqlFragment, touch: SqlFragment): SqlFragment {
  return fragment`coalesce(${touch} >= CASE WHEN ${target}.touch_within_seconds IS NULL THEN '-infinity'::float8
    ELSE extract(epoch FROM now())::float8 - ${target}.touch_within_seconds END, false)`;
}

/**
 * Returns the SQL condition that a credential ends after the touch of a security key has become too
 * old for a target. `reach_of_hosts` computes the end of a new certificate by the same formula. The
 * condition is false if the target limits no age of the touch, or if the touch is NULL.
 *
 * @param touch the time of the touch, in seconds since 1970
 * @param ends the time at which the credential ends
 */
export function outlivesTouch(
  target: SqlFragment,
  touch: SqlFragment,
  ends: SqlFragment,
): SqlFragment {
  return fragment`coalesce(${ends} > to_timestamp(${touch} + ${target}.touch_within_seconds), false)`;
}

/**
 * Returns the SQL condition that the rule of a target admits a user, without the conditions on the
 * touch of a security key. No row is locked. A statement that issues a credential compares the
 * version of the rules afterwards; lists and previews only show what was committed. `OFFSET 0`
 * keeps PostgreSQL from hashing all assignments for one row.
 *
 * @param orgId the organization of the user; by default a subquery reads it
 */
export function admits(
  target: SqlFragment,
  userId: SqlFragment,
  orgId: SqlFragment = fragment`(SELECT p.org_id FROM users p WHERE p.id = ${userId})`,
): SqlFragment {
  return fragment`(${target}.access = 'everyone' OR (coalesce(${target}.org_id = ${orgId}, false) AND (
      EXISTS (SELECT FROM access_assignments x WHERE x.target_id = ${target}.id AND x.user_id = ${userId} OFFSET 0)
      OR (${BY_GROUPS} AND EXISTS (
        SELECT FROM access_assignments x JOIN group_members m ON m.group_id = x.group_id
        WHERE x.target_id = ${target}.id AND m.user_id = ${userId} OFFSET 0)))))`;
}
