import type { Conditions, TargetKind } from '#domain/access/reach/decision.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Rule, Target, TargetRef } from './target.js';
import type { TargetPlace } from './target-query.js';

/** A row of `access_targets`, with the name of the target and the numbers of its assignments. */
export interface TargetRow {
  id: string;
  kind: TargetKind;
  name: string;
  client_id: string | null;
  is_cluster: boolean;
  installation_id: string | null;
  role_arn: string | null;
  region: string | null;
  hosts: string[];
  logins: string[];
  access: 'everyone' | 'assigned';
  touch_within_seconds: number | null;
  models: 'fips-only' | null;
  user_verification: 'required' | null;
  version: string;
  updated_at: Date;
  users: number;
  groups: number;
  place: string;
}

/** The SQL of the name of a target `t`, the same as `name_of_target` in the migrations. */
const NAME = fragment`coalesce(t.name, c.metadata ->> 'client_name', c.id, n.owner)`;

/** The SQL of the value by which the targets of one kind are sorted. */
const ORDER = fragment`lower(left(${NAME}, 256)) COLLATE "C"`;

/** The columns of {@link TargetRow}. */
export const TARGET_COLUMNS = fragment`
  t.id, t.kind, ${NAME} AS name, t.client_id, coalesce(c.kind = 'kubernetes', false) AS is_cluster, t.installation_id,
  t.role_arn, t.region, t.hosts, t.logins, t.access, t.touch_within_seconds, t.models, t.user_verification, t.version,
  t.updated_at, ${ORDER} AS place,
  (SELECT count(x.user_id)::int FROM access_assignments x WHERE x.target_id = t.id) AS users,
  (SELECT count(x.group_id)::int FROM access_assignments x WHERE x.target_id = t.id) AS groups`;

/** The FROM clause that {@link TARGET_COLUMNS} need. */
export const TARGETS = fragment`access_targets t LEFT JOIN oauth_clients c ON c.id = t.client_id
  LEFT JOIN github_installations n ON n.id = t.installation_id`;

/**
 * The part of the list of targets that a statement reads: filters, the position after which it
 * begins, and the most rows.
 */
export interface TargetRange {
  readonly kind?: TargetKind | undefined;
  readonly q?: string | undefined;
  readonly after?: TargetPlace | undefined;
  readonly limit: number;
}

/**
 * Lists targets of an organization, sorted by kind and name.
 *
 * @param columns more columns, over the target `t`
 * @param condition a further condition on the target `t`
 */
export function listTargets<Row extends TargetRow = TargetRow>(
  tx: EntityManager,
  orgId: string,
  { kind, q, after, limit }: TargetRange,
  columns: SqlFragment = fragment``,
  condition: SqlFragment = fragment`true`,
): Promise<Row[]> {
  const text = q?.toLowerCase() ?? null;
  return sql<Row>(tx)`
    SELECT ${TARGET_COLUMNS} ${columns} FROM ${TARGETS}
    WHERE t.org_id = ${orgId} AND (${kind ?? null}::text IS NULL OR t.kind = ${kind ?? null})
      AND (${text}::text IS NULL
           OR strpos(lower(concat_ws(' ', ${NAME}, t.role_arn, t.client_id)), ${text}) > 0)
      AND (${after?.kind ?? null}::text IS NULL
           OR (t.kind, ${ORDER}, t.id) > (${after?.kind ?? null}, ${after?.name ?? null}, ${after?.id ?? null}::uuid))
      AND ${condition}
    ORDER BY t.kind, ${ORDER}, t.id LIMIT ${limit}`;
}

/**
 * Finds a target of an organization; undefined if the organization does not have it. The caller has
 * checked the form of the id by `isTargetId`.
 */
export async function findTarget(
  tx: EntityManager,
  orgId: string,
  ref: TargetRef,
): Promise<Target | undefined> {
  const [row] = await sql<TargetRow>(tx)`
    SELECT ${TARGET_COLUMNS} FROM ${TARGETS} WHERE t.org_id = ${orgId} AND ${isNamed(ref)}`;
  return row && target(row);
}

/**
 * Locks a target until the transaction ends, and then reads its values, so that the values cannot
 * change any more. Returns undefined if the organization does not have the target.
 */
export async function lockTarget(
  tx: EntityManager,
  orgId: string,
  ref: TargetRef,
): Promise<Target | undefined> {
  await sql(
    tx,
  )`SELECT t.id FROM access_targets t WHERE t.org_id = ${orgId} AND ${isNamed(ref)} FOR UPDATE`;
  return findTarget(tx, orgId, ref);
}

function isNamed({ kind, id }: TargetRef): SqlFragment {
  if (kind === 'application') return fragment`t.kind = 'application' AND t.client_id = ${id}`;
  if (kind === 'github_installation') return fragment`t.installation_id = ${id}::bigint`;
  return fragment`t.kind = ${kind} AND t.id = ${id}::uuid`;
}

/** The values of a new target that admins make: an AWS role or a group of hosts. */
export type NewTarget =
  | {
      readonly kind: 'aws_role';
      readonly roleArn: string;
      readonly name: string;
      readonly region: string | null;
    }
  | {
      readonly kind: 'host_group';
      readonly name: string;
      readonly hosts: readonly string[];
      readonly logins: readonly string[];
    };

/** Counts the AWS roles and groups of hosts of an organization, which together have a limit. */
export async function countMade(tx: EntityManager, orgId: string): Promise<number> {
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n FROM access_targets
    WHERE org_id = ${orgId} AND kind IN ('aws_role', 'host_group')`;
  return row?.n ?? 0;
}

/**
 * Adds a target. Returns its id; undefined if the organization already has the role or a target
 * with the name.
 */
export async function insertTarget(
  tx: EntityManager,
  orgId: string,
  made: NewTarget,
): Promise<string | undefined> {
  const role = made.kind === 'aws_role' ? made : undefined;
  const group = made.kind === 'host_group' ? made : undefined;
  const [row] = await sql<{ id: string }>(tx)`
    INSERT INTO access_targets (org_id, kind, name, role_arn, region, hosts, logins)
    VALUES (${orgId}, ${made.kind}, ${made.name}, ${role?.roleArn ?? null}, ${role?.region ?? null},
            ${group?.hosts ?? []}, ${group?.logins ?? []})
    ON CONFLICT DO NOTHING RETURNING id`;
  return row?.id;
}

/** The values of a role or a group of hosts that an admin can change. */
export type TargetChange = Partial<
  Pick<Target, 'name' | 'roleArn' | 'region' | 'hosts' | 'logins'>
>;

/**
 * Changes a locked AWS role or group of hosts.
 *
 * @throws QueryFailedError if another target of the organization has the new name or role
 */
export async function changeTarget(
  tx: EntityManager,
  { id }: Target,
  { name, roleArn, region, hosts, logins }: Required<TargetChange>,
): Promise<void> {
  await sql(tx)`
    UPDATE access_targets
    SET name = ${name}, role_arn = ${roleArn}, region = ${region}, hosts = ${hosts}, logins = ${logins},
        version = version + 1, updated_at = now()
    WHERE id = ${id}`;
}

/** Deletes a locked AWS role or group of hosts with its assignments. */
export async function deleteTarget(tx: EntityManager, { id }: Target): Promise<void> {
  await sql(tx)`DELETE FROM access_targets WHERE id = ${id}`;
}

/** Sets the rule of a locked target, and raises the version of the target. */
export async function changeRule(
  tx: EntityManager,
  { id }: Target,
  { access, conditions }: Rule,
): Promise<void> {
  const { touchWithinSeconds, models, userVerification } = conditions;
  await sql(tx)`
    UPDATE access_targets
    SET access = ${access}, touch_within_seconds = ${touchWithinSeconds}, models = ${models},
        user_verification = ${userVerification}, version = version + 1, updated_at = now()
    WHERE id = ${id}`;
}

/** Makes a {@link Target} from a row with {@link TARGET_COLUMNS}. */
export function target(row: TargetRow): Target {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    clientId: row.client_id,
    isCluster: row.is_cluster,
    installationId: row.installation_id,
    roleArn: row.role_arn,
    region: row.region,
    hosts: row.hosts,
    logins: row.logins,
    access: row.access,
    conditions: conditionsOf(row),
    version: row.version,
    updatedAt: row.updated_at,
    assignedUsers: row.users,
    assignedGroups: row.groups,
  };
}

/** Returns the position of a row in the list of targets. */
export function placeOf({ kind, place, id }: TargetRow): TargetPlace {
  return { kind, name: place, id };
}

function conditionsOf(row: TargetRow): Conditions {
  return {
    touchWithinSeconds: row.touch_within_seconds,
    models: row.models,
    userVerification: row.user_verification,
  };
}
