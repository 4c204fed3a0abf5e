import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/clock/random.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { fixedSql, sql } from '#platform/database/statements/sql.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ScimActor } from './scim-actor.js';
import { COLUMNS, GROUPS, scimUser, type ScimUser, type UserRow } from './directory-user.js';

/** What a write makes of a user. */
export interface ScimUserState {
  readonly userName: string;
  readonly externalId: string | null;
  /** Normalized; null for somebody without one. */
  readonly email: string | null;
  /** What the rest of the service calls them. */
  readonly name: string | null;
  readonly attributes: object;
}

/** How often a user is added where others take the same address at the same moment. */
const MOST_TRIES = 3;

/** Users as an identity provider sees them: those of its organization, whoever made them. */
@Injectable()
export class ScimUsersRepository {
  /** A user, with all that is shown of them. */
  async find(tx: EntityManager, orgId: string, id: string): Promise<ScimUser | undefined> {
    const [row] = await fixedSql<UserRow>(
      tx,
      `SELECT ${COLUMNS}, ${GROUPS} AS groups FROM users u WHERE u.org_id = $1 AND u.id = $2`,
      [orgId, id],
    );
    return row && scimUser(row, true);
  }

  /** A user, locked until the transaction ends. */
  async lock(tx: EntityManager, orgId: string, id: string): Promise<ScimUser | undefined> {
    const [row] = await fixedSql<UserRow>(
      tx,
      `SELECT ${COLUMNS}, ${GROUPS} AS groups FROM users u WHERE u.org_id = $1 AND u.id = $2 FOR UPDATE OF u`,
      [orgId, id],
    );
    return row && scimUser(row, true);
  }

  /**
   * Adds a user with their audit row, in one statement. Where another user has the address, the new one has none to sign in with
   * until SCIM gives it to them; otherwise the tombstone of the address is lifted for them.
   *
   * @throws DomainError uniqueness when the userName is that of another user of the organization
   */
  async insert(
    tx: EntityManager,
    actor: ScimActor,
    user: ScimUserState & { readonly active: boolean },
    id: string = newUuid(),
  ): Promise<ScimUser> {
    // A user who takes the address at this moment is seen by the next try.
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const made = await this.#tryInsert(tx, actor, user, id);
      if (made) return made;
    }
    throw taken();
  }

  /** @returns undefined where the userName, or at this moment the address, is that of another user */
  async #tryInsert(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    user: ScimUserState & { readonly active: boolean },
    id: string,
  ): Promise<ScimUser | undefined> {
    const details = {
      operation: 'create',
      resource_type: 'User',
      resource_id: id,
      email: user.email,
      scim_token_id: tokenId,
    };
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
      ), audited AS (
        INSERT INTO audit_events (id, type, class, subject_id, org_id, request_id, ip, user_agent, details)
        SELECT ${newUuid()}, 'scim_operation', 'admin', id, ${orgId}, ${origin.requestId}, ${origin.ip ?? null},
               ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
                 || CASE WHEN email IS NOT DISTINCT FROM ${user.email}::text THEN '{}' ELSE '{"email_taken": true}' END::jsonb
                 || CASE WHEN EXISTS (SELECT FROM lifted) THEN '{"tombstone_lifted": true}' ELSE '{}' END::jsonb
        FROM made
      )
      SELECT id FROM made`;
    return row && this.find(tx, orgId, id);
  }

  /** Whether another user of the organization signs in with an address. */
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
   * Changes a user who still is what they were, whoever else changes them, with the audit row, in one statement. From then on SCIM manages them.
   *
   * @param audited whether the audit row is written here; what it says beside the rest
   * @returns undefined when they are no longer that, or gone
   * @throws DomainError uniqueness for the userName; QueryFailedError where another user takes the address at this moment
   */
  async update(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    { id, version, active, email }: ScimUser,
    user: ScimUserState,
    audited: Readonly<Record<string, unknown>> | false,
  ): Promise<ScimUser | undefined> {
    const details = {
      operation: 'update',
      resource_type: 'User',
      resource_id: id,
      scim_token_id: tokenId,
      ...audited,
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
        ), audited AS (
          INSERT INTO audit_events (id, type, class, subject_id, org_id, request_id, ip, user_agent, details)
          SELECT ${newUuid()}, 'scim_operation', 'admin', id, ${orgId}, ${origin.requestId}, ${origin.ip ?? null},
                 ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
          FROM changed WHERE ${audited !== false}::boolean
        )
        SELECT id FROM changed`;
      return row && (await this.find(tx, orgId, id));
    } catch (error) {
      if (NAMES.has(violatedConstraint(error))) throw taken();
      throw error;
    }
  }
}

/** The indexes that keep the names of users apart. */
const NAMES: ReadonlySet<string | undefined> = new Set(['users_user_name', 'users_user_name_key']);

function taken(): DomainError {
  return new DomainError('uniqueness', 'The userName belongs to another user.');
}
