/**
 * The decision of `decideReach` (`decision.ts`) as SQL. The database functions `is_assigned`,
 * `fitting_touch` and `reach_of_hosts` do a part of it; they are in the migration
 * `1764000020000-reach-of-hosts.sql`.
 *
 * At READ COMMITTED, a statement that waited for a lock
 * reads only the locked rows again. So it locks one row that every change of a target, an
 * assignment or a membership updates as its last act (`access_versions`). If the version in that
 * row differs from the one in the snapshot of the statement, the statement decides nothing, and a
 * second statement decides.
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

/** The SQL condition that memberships of SCIM groups open targets (SVC_ACCESS_BY_GROUPS). */
export const BY_GROUPS = fragment`(SELECT d.access_by_groups FROM deployment d)`;

/** The kinds of reach that consist of one target. */
export type OneTarget = Exclude<Reach, 'hosts'>;

/** The SQL conditions that a target `t` is the one that a request `k` of the user `a` is about. */
const IS_OF: Readonly<Record<OneTarget, SqlFragment>> = {
  client: fragment`t.client_id = k.client_id AND t.org_id = c.org_id`,
  cluster: fragment`t.client_id = k.application_id AND t.org_id = a.org_id`,
  role: fragment`t.kind = 'aws_role' AND t.role_arn = k.role_arn AND t.org_id = a.org_id`,
  installation: fragment`t.installation_id = k.installation_id AND t.org_id = a.org_id`,
};

/**
 * Returns the row with the version of the rules of the organization of the target. The version
 * shows if the statement has seen every change of the rules. The row is locked last.
 */
export function rowOfReach(reach: Reach): LockedRow {
  const organizations = reach === 'client' ? fragment`client` : fragment`account`;
  return {
    name: fragment`access_version`,
    selected: fragment`n.org_id, n.version`,
    from: fragment`access_versions n`,
    where: fragment`n.org_id = ANY (ARRAY(SELECT org_id FROM ${organizations}))`,
    lock: fragment`FOR SHARE OF n`,
  };
}

/**
 * Returns the join of a request `k` with its target `r`, and with the locked version `w`. For
 * groups of hosts, of which a request has many, `r` is their sum (`reach_of_hosts`). `OFFSET 0`
 * makes PostgreSQL look each target up in an index.
 */
export function joinReached(reach: Reach): SqlFragment {
  const version = fragment`LEFT JOIN access_version w ON w.org_id = ${organizationOf(reach)}`;
  if (reach === 'hosts') {
    return fragment`LEFT JOIN reach_of_hosts(ARRAY(
      SELECT (k.n, a.id, a.org_id, s.touches, k.names, k.host)::asked_hosts
      FROM asked k JOIN account a ON a.id = k.of_user JOIN session s ON s.id = k.of_session AND s.user_id = a.id)) r ON r.n = k.n ${version}`;
  }
  const organization =
    reach === 'role' ? fragment`LEFT JOIN organizations o ON o.id = a.org_id` : fragment``;
  return fragment`LEFT JOIN LATERAL (
    SELECT t.id, t.org_id, t.access, t.touch_within_seconds, t.models, t.user_verification
    FROM access_targets t WHERE a.id IS NOT NULL AND ${IS_OF[reach]} OFFSET 0) r ON true ${organization} ${version}`;
}

/**
 * Returns the SQL id of the organization whose targets a request is about: for `client` the
 * organization of the client, otherwise that of the user.
 */
function organizationOf(reach: Reach): SqlFragment {
  return reach === 'client' ? fragment`c.org_id` : fragment`a.org_id`;
}

/**
 * Returns the branch of a CASE that denies with `changed`. It applies if the rules of the
 * organization changed after the snapshot of the statement, or the lock on their version was
 * skipped. A second statement then reads everything again.
 */
export function denialOfChange(reach: Reach): SqlFragment {
  const org = organizationOf(reach);
  return fragment`WHEN ${org} IS NOT NULL AND (w.org_id IS NULL OR w.version <> (
    SELECT n.version FROM access_versions n WHERE n.org_id = ${org})) THEN 'changed'`;
}

const DENIAL_OF_TARGET = fragment`
  WHEN NOT (r.access = 'everyone' OR coalesce(r.org_id = a.org_id, false) AND is_assigned(r.id, a.id)) THEN 'not_assigned'
  WHEN ${hasConditionsSql(fragment`r`)} AND NOT ${isMetBy(fragment`r`, fittingTouchSql(fragment`r`, fragment`s.touches`))}
    THEN 'condition_unmet'`;

/**
 * The denials by the only target `r` of a request, as the branches of a CASE. Nothing is issued for
 * an unknown application or installation, because each of them has a row. A role of AWS without a
 * row is denied only if the organization lists its roles.
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

/** The conditions of the target `r`, for the answer to a request that does not meet them. */
export const CONDITIONS_OF_REACHED = fragment`jsonb_build_object(
  'touchWithinSeconds', r.touch_within_seconds, 'models', r.models, 'userVerification', r.user_verification)`;

/** Returns the SQL condition that a target has conditions. */
export function hasConditionsSql(target: SqlFragment): SqlFragment {
  return fragment`num_nonnulls(${target}.touch_within_seconds, ${target}.models, ${target}.user_verification) > 0`;
}

/**
 * Returns the newest touch that fits the conditions of a target, in seconds since 1970, or NULL.
 */
export function fittingTouchSql(target: SqlFragment, touches: SqlFragment): SqlFragment {
  return fragment`fitting_touch(${touches}, ${target}.models, ${target}.user_verification)`;
}

/** Returns the SQL condition that a touch meets the conditions of a target now. */
export function isMetBy(target: SqlFragment, touch: SqlFragment): SqlFragment {
  return fragment`coalesce(${touch} >= CASE WHEN ${target}.touch_within_seconds IS NULL THEN '-infinity'::float8
    ELSE extract(epoch FROM now())::float8 - ${target}.touch_within_seconds END, false)`;
}

/**
 * Returns the SQL condition that the rule of a target admits a user; the conditions of the target
 * are not part of it. It locks nothing: an issuing statement compares the version of the rules, and
 * lists, previews and endings read what was committed. `OFFSET 0` keeps PostgreSQL from hashing all
 * assignments for one row.
 *
 * @param orgId the organization of the user, if the statement has it
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
