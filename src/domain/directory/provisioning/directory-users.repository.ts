/**
 * The users of an organization as its identity provider sees them through SCIM, including users
 * that SCIM did not create.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { RECORDED, recordAudit } from '#domain/audit/audit.repository.js';
import type { NamedAddresses } from '../record-addresses.js';
import { newUuid } from '#platform/clock/random.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { fixedSql, fragment, sql } from '#platform/database/statements/sql.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  COLUMNS,
  GROUPS,
  directoryUser,
  type DirectoryUser,
  type UserRow,
} from './directory-user.js';
import { scimOperation, type LeftOut, type ScimActor } from './scim-operation.js';

/** The attributes of a user that a write sets. */
export interface UserState {
  readonly userName: string;
  readonly externalId: string | null;
  /** The normalized e-mail address with which the user signs in; null for a user without one. */
  readonly email: string | null;
  /** The name of the user that pages and groups show. */
  readonly name: string | null;
  readonly attributes: object;
}

/** The state that a user shall have after a write. */
export interface NextUser extends UserState {
  readonly active: boolean;
  readonly leftOut?: readonly LeftOut[];
  /**
   * True if the write says that the user is inactive. The access of the user's twins (members who
   * signed in with an e-mail address of the record) then ends. It ends even if the user was
   * inactive before.
   */
  readonly endsAccess?: boolean;
}

/** A user with the facts that a change by SCIM needs. */
export interface KnownUser extends DirectoryUser {
  readonly orgId: string;
  readonly isOrgAdmin: boolean;
  readonly scimManaged: boolean;
  /** True if the user first signed in as a member and was then taken over by a SCIM record. */
  readonly isTakenOver: boolean;
}

interface KnownRow extends UserRow {
  is_org_admin: boolean;
  scim_managed: boolean;
  is_taken_over: boolean;
}

const KNOWN = `${COLUMNS}, ${GROUPS} AS groups, u.is_org_admin, u.scim_managed, u.taken_over_at IS NOT NULL AS is_taken_over`;

/**
 * The text that the JSON of the attributes contains if it names a manager. The user is then read
 * again after the write, to find the name and the URL (`$ref`) of the manager.
 */
const MANAGER_KEY = '"manager": ';

/**
 * Finds a user with all attributes and groups, as SCIM shows the user. Returns undefined if the
 * organization has no such user.
 */
export async function findDirectoryUser(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<DirectoryUser | undefined> {
  const [row] = await fixedSql<UserRow>(
    tx,
    `SELECT ${COLUMNS}, ${GROUPS} AS groups FROM users u WHERE u.org_id = $1 AND u.id = $2`,
    [orgId, id],
  );
  return row && directoryUser(row, true);
}

/**
 * Reads a user with the facts that a change by SCIM needs, without a lock. Returns undefined if the
 * organization has no such user.
 */
export async function findKnownUser(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<KnownUser | undefined> {
  const text = `SELECT ${KNOWN} FROM users u WHERE u.org_id = $1 AND u.id = $2`;
  const [row] = await fixedSql<KnownRow>(tx, text, [orgId, id]);
  return row && knownUser(row, orgId);
}

/**
 * Locks the row of a user until the transaction ends, and then reads the user for a change by SCIM.
 * Returns undefined if the organization has no such user.
 */
export async function lockKnownUser(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<KnownUser | undefined> {
  const text = `SELECT ${KNOWN} FROM users u WHERE u.org_id = $1 AND u.id = $2 FOR UPDATE OF u`;
  const [row] = await fixedSql<KnownRow>(tx, text, [orgId, id]);
  return row && knownUser(row, orgId);
}

/**
 * Adds a user with the audit event, in one statement that also locks the directory, if the new user
 * affects no other user. The new user affects a user who signs in with an e-mail address that the
 * new user names, and a user who has the same userName. It also affects a removed user whose
 * tombstone, which bars a sign-in, the new user would lift.
 *
 * @param manager the manager of the data source, because the statement needs no transaction around
 *   it
 * @param named the addresses that the new user names
 * @returns undefined if another user is affected; nothing has changed then
 */
export async function insertUnclaimedUser(
  manager: EntityManager,
  actor: ScimActor,
  user: NextUser,
  { has, plain }: NamedAddresses,
  id: string = newUuid(),
): Promise<DirectoryUser | undefined> {
  const { orgId } = actor;
  const { userName, externalId, active, email } = user;
  const operation = scimOperation(actor, 'create', 'User', id, { email });
  const subject = { subjectId: fragment`id`, subjectEmail: fragment`${email}::text` };
  const addresses = has.map(({ address }) => address);
  const ranks = has.map(({ rank }) => rank);
  const [row] = await sql<Pick<UserRow, 'attributes' | 'created_at' | 'updated_at'>>(manager)`
    WITH asked AS (
      SELECT ${id}::uuid AS id, ${JSON.stringify(user.attributes)}::jsonb AS attributes
    ), made AS (
      SELECT id, attributes FROM asked
      WHERE add_unclaimed_record(id, ${orgId}, ${email}, ${user.name}, ${active}, ${userName}, ${externalId}, attributes,
                                 ${addresses}, ${ranks}, ${plain})
    ), audited AS (${recordAudit({ ...operation, ...subject }, fragment`FROM made`)})
    SELECT attributes::text, now() AS created_at, now() AS updated_at, ${RECORDED} FROM made`;
  if (!row) return undefined;
  if (row.attributes.includes(MANAGER_KEY)) return findDirectoryUser(manager, orgId, id);
  const known = { id, user_name: userName, external_id: externalId, active, email, version: '1' };
  return directoryUser({ ...row, ...known }, true);
}

/**
 * Adds a user with the audit event, in one statement. The caller has locked the directory of the
 * organization. For this user, the statement also lifts tombstones, which bar a sign-in. These are
 * the tombstones of the e-mail addresses of the user, and of identities that were removed with the
 * same userName or externalId.
 *
 * @param addresses the addresses that the user has
 * @throws DomainError uniqueness if another user of the organization has the userName
 */
export async function insertDirectoryUser(
  tx: EntityManager,
  actor: ScimActor,
  user: NextUser,
  addresses: readonly string[],
  more: Readonly<Record<string, unknown>>,
  id: string = newUuid(),
): Promise<DirectoryUser> {
  const { orgId } = actor;
  const operation = scimOperation(actor, 'create', 'User', id, { email: user.email, ...more });
  const details = fragment`${JSON.stringify(operation.details)}::jsonb
    || CASE WHEN EXISTS (SELECT FROM lifted) THEN '{"tombstone_lifted": true}' ELSE '{}' END::jsonb`;
  const record = { ...operation, subjectId: fragment`id`, details };
  const [row] = await sql<{ id: string }>(tx)`
    WITH made AS (
      INSERT INTO users (id, org_id, email, name, active, scim_managed, user_name, external_id, attributes)
      VALUES (${id}, ${orgId}::uuid, ${user.email}::text, ${user.name}, ${user.active}::boolean, true,
              ${user.userName}, ${user.externalId}, ${JSON.stringify(user.attributes)}::jsonb)
      ON CONFLICT DO NOTHING
      RETURNING id
    ), lifted AS (
      UPDATE scim_tombstones t SET lifted_for = made.id
      FROM made WHERE t.org_id = ${orgId} AND t.email = ANY (${addresses}::text[]) AND NOT t.by_admin
      RETURNING t.email
    ), returned AS (
      UPDATE scim_removed_identities i SET lifted_for = made.id
      FROM made WHERE i.org_id = ${orgId} AND NOT i.by_admin
        AND (lower(i.user_name COLLATE "C") = lower(${user.userName}::text COLLATE "C")
          OR i.external_id = ${user.externalId}::text)
    ), audited AS (${recordAudit(record, fragment`FROM made`)})
    SELECT id, ${RECORDED} FROM made`;
  const made = row && (await findDirectoryUser(tx, orgId, id));
  if (!made) throw taken();
  return made;
}

/**
 * Changes a user and writes the audit event in one statement, if the user still has the version
 * that was read. SCIM manages the user from then on. If the user signed in as a member before SCIM
 * knew the user, the change makes the member a SCIM record (a take-over).
 *
 * @param audited more details of the audit event; false if the caller writes the event
 * @returns undefined if the user has another version now, or was removed
 * @throws DomainError uniqueness for the userName
 */
export async function updateDirectoryUser(
  tx: EntityManager,
  actor: ScimActor,
  { id, version, active, email, scimManaged }: KnownUser,
  user: UserState,
  audited: Readonly<Record<string, unknown>> | false,
  operation: 'create' | 'update' = 'update',
): Promise<DirectoryUser | undefined> {
  const { orgId } = actor;
  const record = {
    ...scimOperation(actor, operation, 'User', id, audited || {}),
    subjectId: fragment`id`,
  };
  try {
    const [row] = await sql<{ id: string }>(tx)`
      WITH changed AS (
        UPDATE users SET user_name = ${user.userName}, external_id = ${user.externalId}, email = ${user.email},
               name = ${user.name}, attributes = ${JSON.stringify(user.attributes)}, scim_managed = true,
               taken_over_at = CASE WHEN scim_managed THEN taken_over_at ELSE now() END,
               version = version + 1, updated_at = now()
        WHERE id = ${id} AND org_id = ${orgId} AND version = ${version} AND active = ${active}
          AND email IS NOT DISTINCT FROM ${email} AND scim_managed = ${scimManaged}
        RETURNING id
      ), audited AS (${recordAudit(record, fragment`FROM changed WHERE ${audited !== false}::boolean`)})
      SELECT id, ${RECORDED} FROM changed`;
    return row && (await findDirectoryUser(tx, orgId, id));
  } catch (error) {
    if (NAMES.has(violatedConstraint(error))) throw taken();
    throw error;
  }
}

/** The unique indexes on userNames. If a write violates one of them, the error is `uniqueness`. */
const NAMES: ReadonlySet<string | undefined> = new Set(['users_user_name', 'users_user_name_key']);

function knownUser(row: KnownRow, orgId: string): KnownUser {
  return {
    ...directoryUser(row, true),
    orgId,
    isOrgAdmin: row.is_org_admin,
    scimManaged: row.scim_managed,
    isTakenOver: row.is_taken_over,
  };
}

function taken(): DomainError {
  return new DomainError('uniqueness', 'The userName belongs to another user.');
}
