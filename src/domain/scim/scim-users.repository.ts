import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/crypto/random.js';
import { violatedConstraint } from '#platform/database/faults.js';
import { fixedSql, sql } from '#platform/database/sql.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ScimActor } from './scim-actor.js';
import { COLUMNS, GROUPS, scimUser, type ScimUser, type UserRow } from './scim-user.js';

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

/** Users as an identity provider sees them: those of its organization, whoever made them. */
@Injectable()
export class ScimUsersRepository {
  /** @param withGroups whether the groups they are in are wanted */
  async find(
    tx: EntityManager,
    orgId: string,
    id: string,
    withGroups: boolean,
  ): Promise<ScimUser | undefined> {
    const [row] = await fixedSql<UserRow>(
      tx,
      `SELECT ${COLUMNS}${withGroups ? `, ${GROUPS} AS groups` : ''} FROM users u WHERE u.org_id = $1 AND u.id = $2`,
      [orgId, id],
    );
    return row && scimUser(row, withGroups);
  }

  /** A user, locked until the transaction ends. */
  async lock(tx: EntityManager, orgId: string, id: string): Promise<ScimUser | undefined> {
    const [row] = await fixedSql<UserRow>(
      tx,
      `SELECT ${COLUMNS} FROM users u WHERE u.org_id = $1 AND u.id = $2 FOR UPDATE OF u`,
      [orgId, id],
    );
    return row && scimUser(row, false);
  }

  /**
   * Adds a user with their audit row, in one statement.
   *
   * @throws DomainError uniqueness when the userName or the e-mail is somebody's in the organization
   */
  async insert(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    user: ScimUserState & { readonly active: boolean },
    id: string = newUuid(),
  ): Promise<ScimUser> {
    const details = {
      operation: 'create',
      resource_type: 'User',
      resource_id: id,
      email: user.email,
      scim_token_id: tokenId,
    };
    const [row] = await sql<UserRow>(tx)`
      WITH made AS (
        INSERT INTO users (id, org_id, email, name, active, scim_managed, user_name, external_id, attributes)
        VALUES (${id}, ${orgId}, ${user.email}, ${user.name}, ${user.active}, true, ${user.userName}, ${user.externalId},
                ${JSON.stringify(user.attributes)})
        ON CONFLICT DO NOTHING
        RETURNING id, user_name, external_id, active, email, attributes, version, created_at, updated_at
      ), audited AS (
        INSERT INTO audit_events (id, type, class, subject_id, org_id, request_id, ip, user_agent, details)
        SELECT ${newUuid()}, 'scim_operation', 'admin', id, ${orgId}, ${origin.requestId}, ${origin.ip ?? null},
               ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
        FROM made
      )
      SELECT id, user_name, external_id, active, email, attributes::text AS attributes, version, created_at, updated_at
      FROM made`;
    if (!row) throw taken();
    return scimUser({ ...row, groups: null }, true);
  }

  /**
   * Changes a user who still is what they were, whoever else changes them, with the audit row, in one statement. From then on SCIM manages them.
   *
   * @param audited whether the audit row is written here
   * @returns undefined when they are no longer that, or gone
   * @throws DomainError uniqueness
   */
  async update(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    { id, version, active, email }: ScimUser,
    user: ScimUserState,
    audited: boolean,
  ): Promise<ScimUser | undefined> {
    const details = {
      operation: 'update',
      resource_type: 'User',
      resource_id: id,
      scim_token_id: tokenId,
    };
    try {
      const [row] = await sql<UserRow>(tx)`
        WITH changed AS (
          UPDATE users SET user_name = ${user.userName}, external_id = ${user.externalId}, email = ${user.email},
                 name = ${user.name}, attributes = ${JSON.stringify(user.attributes)}, scim_managed = true,
                 version = version + 1, updated_at = now()
          WHERE id = ${id} AND org_id = ${orgId} AND version = ${version} AND active = ${active}
            AND email IS NOT DISTINCT FROM ${email}
          RETURNING id, user_name, external_id, active, email, attributes, version, created_at, updated_at
        ), audited AS (
          INSERT INTO audit_events (id, type, class, subject_id, org_id, request_id, ip, user_agent, details)
          SELECT ${newUuid()}, 'scim_operation', 'admin', id, ${orgId}, ${origin.requestId}, ${origin.ip ?? null},
                 ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
          FROM changed WHERE ${audited}::boolean
        )
        SELECT id, user_name, external_id, active, email, attributes::text AS attributes, version, created_at, updated_at,
               (SELECT json_agg(json_build_object('value', g.id, '$ref', '../Groups/' || g.id, 'display', g.display_name,
                                                  'type', 'direct') ORDER BY g.id)::text
                FROM group_members m JOIN groups g ON g.id = m.group_id WHERE m.user_id = changed.id) AS groups
        FROM changed`;
      return row && scimUser(row, true);
    } catch (error) {
      const constraint = violatedConstraint(error);
      if (constraint === 'users_email' || constraint === 'users_user_name') throw taken();
      throw error;
    }
  }
}

function taken(): DomainError {
  return new DomainError(
    'uniqueness',
    'The userName or an e-mail address belongs to another user.',
  );
}
