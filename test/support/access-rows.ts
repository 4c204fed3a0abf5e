import { randomUUID } from 'node:crypto';
import type { DataSource, EntityManager } from 'typeorm';
import type { ScimOrganization } from './scim-organization.js';
import { rows } from './rows.js';

/** A connection to the database, or a transaction on it. */
type Connection = Pick<DataSource | EntityManager, 'query'>;

/**
 * The rule of a target. By default the target admits everyone of the organization without a
 * condition. `touchWithin` is the largest age in seconds of the last touch of the security key.
 */
export interface RuleValues {
  readonly access?: 'everyone' | 'assigned';
  readonly touchWithin?: number;
  readonly models?: 'fips-only';
  readonly userVerification?: 'required';
}

/** A person or a SCIM group that is assigned to a target. */
export type Assignee = { readonly userId: string } | { readonly groupId: string };

/**
 * Returns the id of the target (row of `access_targets`) that stands for an application or cluster.
 */
export function targetOfClient(connection: Connection, clientId: string): Promise<string> {
  return idOf(connection, 'client_id', clientId);
}

/** Returns the id of the target (row of `access_targets`) that stands for a GitHub installation. */
export function targetOfInstallation(connection: Connection, id: number): Promise<string> {
  return idOf(connection, 'installation_id', id);
}

async function idOf(connection: Connection, column: string, value: unknown): Promise<string> {
  const [row] = await query<{ id: string }>(
    connection,
    `SELECT id FROM access_targets WHERE ${column} = $1`,
    [value],
  );
  if (!row) throw new Error(`no target has ${column} ${String(value)}`);
  return row.id;
}

/** Inserts a target for a role of AWS. Returns its id. */
export async function makeRole(
  connection: Connection,
  orgId: string,
  roleArn: string,
  rule: RuleValues = {},
): Promise<string> {
  const id = randomUUID();
  await query(
    connection,
    `INSERT INTO access_targets (id, org_id, kind, role_arn, name) VALUES ($1, $2, 'aws_role', $3, 'role')`,
    [id, orgId, roleArn],
  );
  await setRule(connection, id, rule);
  return id;
}

/** Inserts a target for a group of hosts. Returns its id. */
export async function makeHostGroup(
  connection: Connection,
  orgId: string,
  name: string,
  logins: readonly string[],
  rule: RuleValues = {},
): Promise<string> {
  const id = randomUUID();
  await query(
    connection,
    `INSERT INTO access_targets (id, org_id, kind, name, hosts, logins)
     VALUES ($1, $2, 'host_group', $3, '{*.example}', $4)`,
    [id, orgId, name, logins],
  );
  await setRule(connection, id, rule);
  return id;
}

/** Replaces the whole rule of a target. A condition that is left out is removed. */
export async function setRule(
  connection: Connection,
  targetId: string,
  { access = 'everyone', touchWithin, models, userVerification }: RuleValues,
): Promise<void> {
  await query(
    connection,
    `UPDATE access_targets
     SET access = $2, touch_within_seconds = $3, models = $4, user_verification = $5, version = version + 1
     WHERE id = $1`,
    [targetId, access, touchWithin ?? null, models ?? null, userVerification ?? null],
  );
}

/** Assigns people and SCIM groups to a target, so that the target admits them. */
export async function assign(
  connection: Connection,
  targetId: string,
  ...assignees: readonly Assignee[]
): Promise<void> {
  for (const assignee of assignees) {
    await query(
      connection,
      'INSERT INTO access_assignments (target_id, user_id, group_id) VALUES ($1, $2, $3)',
      [targetId, ...columnsOf(assignee)],
    );
  }
}

/** Removes the assignment of a person or SCIM group to a target. */
export async function unassign(
  connection: Connection,
  targetId: string,
  assignee: Assignee,
): Promise<void> {
  await query(
    connection,
    `DELETE FROM access_assignments
     WHERE target_id = $1 AND (user_id = $2::uuid OR group_id = $3::uuid)`,
    [targetId, ...columnsOf(assignee)],
  );
}

/** Creates a group by SCIM. Returns its id. */
export async function makeScimGroup(
  { scim }: Pick<ScimOrganization, 'scim'>,
  displayName: string,
  memberIds: readonly string[] = [],
): Promise<string> {
  const members = memberIds.map((value) => ({ value }));
  const made = await scim('POST', '/Groups', { displayName, members });
  if (made.status !== 201) throw new Error(`the group was not made: ${made.text}`);
  return made.json.id as string;
}

/**
 * The largest number of members in one INSERT. More could take longer than the 10 s after which the
 * database pool ends a statement.
 */
const INSERTED_MEMBERS = 5_000;

/** Inserts a SCIM group with members by SQL. Returns its id. */
export async function makeGroupRow(
  connection: Connection,
  orgId: string,
  displayName: string,
  memberIds: readonly string[] = [],
): Promise<string> {
  const id = randomUUID();
  await query(connection, 'INSERT INTO groups (id, org_id, display_name) VALUES ($1, $2, $3)', [
    id,
    orgId,
    displayName,
  ]);
  for (let from = 0; from < memberIds.length; from += INSERTED_MEMBERS) {
    await query(
      connection,
      'INSERT INTO group_members (group_id, user_id) SELECT $1, unnest($2::uuid[])',
      [id, memberIds.slice(from, from + INSERTED_MEMBERS)],
    );
  }
  return id;
}

/**
 * A row of a queue: it names users whom a target admits no longer. A worker takes it, and ends what
 * the users got from the target.
 */
export interface QueuedEnding {
  readonly target_id: string;
  readonly rule: string;
  readonly user_ids: string[] | null;
  /** Users who were members of removed groups. */
  readonly member_ids: string[] | null;
}

/** Returns the rows of the queue in the order in which they were added. */
export function queuedEndings(connection: DataSource): Promise<QueuedEnding[]> {
  return rows(
    connection,
    'SELECT target_id, rule, user_ids, member_ids FROM access_endings ORDER BY id',
  );
}

function columnsOf(assignee: Assignee): [string | null, string | null] {
  return 'userId' in assignee ? [assignee.userId, null] : [null, assignee.groupId];
}

async function query<Row>(
  connection: Connection,
  statement: string,
  parameters: unknown[],
): Promise<Row[]> {
  return connection.query(statement, parameters) as Promise<Row[]>;
}
