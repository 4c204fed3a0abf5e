import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
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
import { scimOperation, type ScimActor } from './scim-operation.js';

/** The attributes of a user that a write sets. */
export interface UserState {
  readonly userName: string;
  readonly externalId: string | null;
  /** The normalized address that the user signs in with; null for a user without one. */
  readonly email: string | null;
  /** The name that pages and groups show. */
  readonly name: string | null;
  readonly attributes: object;
}

/** The state of a user after a write. */
export interface NextUser extends UserState {
  readonly active: boolean;
}

/** A user whose row the transaction has locked. */
export interface LockedDirectoryUser extends DirectoryUser {
  readonly orgId: string;
  readonly isOrgAdmin: boolean;
}

/** The number of attempts to add a user while other requests take the same address. */
const MOST_TRIES = 3;

/** The users of an organization as its identity provider sees them, also those that other paths created. */
@Injectable()
export class DirectoryUsersRepository {
  /** Finds a user with all attributes and groups. */
  async find(tx: EntityManager, orgId: string, id: string): Promise<DirectoryUser | undefined> {
    const [row] = await fixedSql<UserRow>(
      tx,
      `SELECT ${COLUMNS}, ${GROUPS} AS groups FROM users u WHERE u.org_id = $1 AND u.id = $2`,
      [orgId, id],
    );
    return row && directoryUser(row, true);
  }

  /** Locks the row of a user until the transaction ends, and reads the user. */
  async lock(
    tx: EntityManager,
    orgId: string,
    id: string,
  ): Promise<LockedDirectoryUser | undefined> {
    const [row] = await fixedSql<UserRow & { is_org_admin: boolean }>(
      tx,
      `SELECT ${COLUMNS}, ${GROUPS} AS groups, u.is_org_admin
       FROM users u WHERE u.org_id = $1 AND u.id = $2 FOR UPDATE OF u`,
      [orgId, id],
    );
    return row && { ...directoryUser(row, true), orgId, isOrgAdmin: row.is_org_admin };
  }

  /**
   * Adds a user with the audit row, in one statement. Where another user has the address, the new user has no address to sign
   * in with until SCIM sets it again; otherwise the tombstone of the address is lifted.
   *
   * @throws DomainError uniqueness when another user of the organization has the userName
   */
  async insert(
    tx: EntityManager,
    actor: ScimActor,
    user: NextUser,
    id: string = newUuid(),
  ): Promise<DirectoryUser> {
    // A user who takes the address during the statement is visible to the next attempt.
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const made = await this.#tryInsert(tx, actor, user, id);
      if (made) return made;
    }
    throw taken();
  }

  /** @returns undefined where another user has the userName, or takes the address during the statement */
  async #tryInsert(
    tx: EntityManager,
    actor: ScimActor,
    user: NextUser,
    id: string,
  ): Promise<DirectoryUser | undefined> {
    const { orgId } = actor;
    const operation = scimOperation(actor, 'create', 'User', id, { email: user.email });
    const details = fragment`${JSON.stringify(operation.details)}::jsonb
      || CASE WHEN email IS NOT DISTINCT FROM ${user.email}::text THEN '{}' ELSE '{"email_taken": true}' END::jsonb
      || CASE WHEN EXISTS (SELECT FROM lifted) THEN '{"tombstone_lifted": true}' ELSE '{}' END::jsonb`;
    const record = { ...operation, subjectId: fragment`id`, details };
    const [row] = await sql<{ id: string }>(tx)`
      WITH made AS (
        INSERT INTO users (id, org_id, email, name, active, scim_managed, user_name, external_id, attributes)
        SELECT ${id}, ${orgId}::uuid,
               CASE WHEN NOT EXISTS (SELECT FROM users WHERE org_id = ${orgId} AND email = ${user.email}::text)
                 THEN ${user.email}::text END,
               ${user.name}, ${user.active}::boolean, true, ${user.userName}, ${user.externalId},
               ${JSON.stringify(user.attributes)}::jsonb
        ON CONFLICT DO NOTHING
        RETURNING id, email
      ), lifted AS (
        UPDATE scim_tombstones t SET lifted_for = made.id
        FROM made WHERE t.org_id = ${orgId} AND t.email = made.email
        RETURNING t.email
      ), audited AS (${recordAudit(record, fragment`FROM made`)})
      SELECT id FROM made`;
    return row && this.find(tx, orgId, id);
  }

  /** Tells whether another user of the organization signs in with an address. */
  async isAddressTaken(
    tx: EntityManager,
    orgId: string,
    id: string,
    email: string,
  ): Promise<boolean> {
    const others = await sql<{ id: string }>(tx)`
      SELECT id FROM users WHERE org_id = ${orgId} AND email = ${email} AND id <> ${id}`;
    return others.length > 0;
  }

  /**
   * Changes a user that is still of the version that was read, with the audit row, in one statement. SCIM manages the user from
   * then on.
   *
   * @param audited more details of the audit row; false where the caller writes the row
   * @returns undefined when the user is of another version, or gone
   * @throws DomainError uniqueness for the userName; QueryFailedError where another user takes the address during the statement
   */
  async update(
    tx: EntityManager,
    actor: ScimActor,
    { id, version, active, email }: DirectoryUser,
    user: UserState,
    audited: Readonly<Record<string, unknown>> | false,
  ): Promise<DirectoryUser | undefined> {
    const { orgId } = actor;
    const record = {
      ...scimOperation(actor, 'update', 'User', id, audited || {}),
      subjectId: fragment`id`,
    };
    try {
      const [row] = await sql<{ id: string }>(tx)`
        WITH changed AS (
          UPDATE users SET user_name = ${user.userName}, external_id = ${user.externalId}, email = ${user.email},
                 name = ${user.name}, attributes = ${JSON.stringify(user.attributes)}, scim_managed = true,
                 version = version + 1, updated_at = now()
          WHERE id = ${id} AND org_id = ${orgId} AND version = ${version} AND active = ${active}
            AND email IS NOT DISTINCT FROM ${email}
          RETURNING id
        ), audited AS (${recordAudit(record, fragment`FROM changed WHERE ${audited !== false}::boolean`)})
        SELECT id FROM changed`;
      return row && (await this.find(tx, orgId, id));
    } catch (error) {
      if (NAMES.has(violatedConstraint(error))) throw taken();
      throw error;
    }
  }
}

/** The unique indexes on the names of users. */
const NAMES: ReadonlySet<string | undefined> = new Set(['users_user_name', 'users_user_name_key']);

function taken(): DomainError {
  return new DomainError('uniqueness', 'The userName belongs to another user.');
}
