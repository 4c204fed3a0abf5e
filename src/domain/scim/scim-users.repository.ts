import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/crypto/random.js';
import { violatedConstraint } from '#platform/database/faults.js';
import { fixedSql, sql } from '#platform/database/sql.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { FilterFields } from './filter-condition.js';
import { ENTERPRISE_URN, USER_SCHEMA } from './schemas.js';
import type { ScimActor } from './scim-actor.js';
import {
  isCostly,
  isLookUp,
  searchTable,
  type ScimPage,
  type ScimSearch,
} from './scim-search.repository.js';

/** A user as SCIM keeps them. */
export interface ScimUser {
  readonly id: string;
  readonly userName: string;
  readonly externalId: string | null;
  readonly active: boolean;
  readonly email: string | null;
  /** Everything else that SCIM says of them, as the text of a JSON object. */
  readonly attributes: string;
  readonly version: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** The groups they are in, as the text of a JSON array; undefined where nobody asked. */
  readonly groups: string | undefined;
}

/** A user of a list. */
export interface ListedUser {
  readonly id: string;
  /** Undefined where those before them in the list were enough to read at a time. */
  readonly user: ScimUser | undefined;
}

/** What of listed users is wanted. */
export type UserParts = Pick<ScimSearch, 'withAttributes' | 'withRelations'>;

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

interface Row {
  id: string;
  user_name: string;
  external_id: string | null;
  active: boolean;
  email: string | null;
  attributes: string;
  version: string;
  created_at: Date;
  updated_at: Date;
  groups?: string | null;
}

interface ListedRow extends Omit<Row, 'attributes'> {
  attributes: string | null;
  sort_value: string | null;
}

/** Of somebody whom SCIM did not make, what sign-in knows of them. */
const ATTRIBUTES = `CASE WHEN u.scim_managed THEN u.attributes ELSE jsonb_strip_nulls(jsonb_build_object(
  'displayName', u.name,
  'emails', CASE WHEN u.email IS NOT NULL THEN jsonb_build_array(jsonb_build_object('value', u.email, 'primary', true)) END
)) END`;
const USER_NAME = `coalesce(u.user_name, u.email, u.id::text)`;
const GROUPS = `(SELECT json_agg(json_build_object('value', g.id, '$ref', '../Groups/' || g.id, 'display', g.display_name,
    'type', 'direct') ORDER BY g.id)::text
  FROM group_members m JOIN groups g ON g.id = m.group_id WHERE m.user_id = u.id)`;
/** The values of e-mails, in ASCII lower case, as `users_email_values` has them. */
const EMAIL_VALUES = `lower(jsonb_path_query_array(u.attributes, '$.emails[*].value')::text COLLATE "C")::jsonb`;
const WHO = `u.id, ${USER_NAME} AS user_name, u.external_id, u.active, u.email, u.version, u.created_at, u.updated_at`;
const COLUMNS = `${WHO}, (${ATTRIBUTES})::text AS attributes`;

/** About how much text of users is read at a time, and of how many at most. */
export const MOST_TEXT = 1 << 20;
export const MOST_AT_ONCE = 200;
/** All that is to be known of attributes nobody asked for: whether the extension is among the `schemas`. */
const NO_ATTRIBUTES = `CASE WHEN u.attributes ? '${ENTERPRISE_URN}' THEN '{"${ENTERPRISE_URN}": {}}' ELSE '{}' END`;

/** What of users may be long, as SQL. */
function textsOf({ withAttributes, withRelations }: UserParts): {
  attributes: string;
  groups: string;
} {
  return {
    attributes: withAttributes ? `(${ATTRIBUTES})::text` : NO_ATTRIBUTES,
    groups: withRelations ? GROUPS : 'NULL',
  };
}

/** Reads the one who is `listed`: it is soon planned, since identity providers ask for one all the time. */
function showUser(parts: UserParts): string {
  const { attributes, groups } = textsOf(parts);
  return `
    SELECT ${WHO}, ${attributes} AS attributes, ${groups} AS groups, listed.sort_value
    FROM listed JOIN users u ON u.id = listed.id AND u.org_id = $1`;
}

/**
 * Reads those who are `listed`, in their places, until there is {@link MOST_TEXT} of them: the first one whole, however long,
 * and of those behind them no more than who they are.
 */
function showUsers(parts: UserParts): string {
  const { attributes, groups } = textsOf(parts);
  const isThin = !parts.withAttributes && !parts.withRelations;
  const soon = isThin ? 'true' : `listed.place <= ${MOST_AT_ONCE}`;
  // OFFSET keeps the planner from putting the texts together twice, to measure and to show them.
  return `
    SELECT id, user_name, external_id, active, email, version, created_at, updated_at, sort_value,
           CASE WHEN before < ${MOST_TEXT} THEN attributes END AS attributes,
           CASE WHEN before < ${MOST_TEXT} THEN groups END AS groups
    FROM (
      SELECT whole.*, coalesce(sum(octet_length(attributes) + coalesce(octet_length(groups), 0)) OVER (
               ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
      FROM (
        SELECT ${WHO}, listed.place, listed.sort_value, CASE WHEN ${soon} THEN ${attributes} END AS attributes,
               CASE WHEN ${soon} THEN ${groups} END AS groups
        FROM listed JOIN users u ON u.id = listed.id AND u.org_id = $1
        OFFSET 0
      ) whole
    ) measured
    ORDER BY place`;
}

/** What no two users of an organization have. */
const UNIQUE: ReadonlySet<string> = new Set(['id', 'userName']);

/** Where the attributes of a user are, for filters and order. */
const FIELDS: FilterFields = {
  resource: USER_SCHEMA,
  columns: {
    id: { kind: 'uuid', expression: 'u.id', required: true },
    userName: { kind: 'text', expression: USER_NAME, required: true },
    externalId: { kind: 'text', expression: 'u.external_id' },
    active: { kind: 'boolean', expression: 'u.active' },
    'meta.resourceType': { kind: 'text', expression: `'User'::text`, required: true },
    'meta.created': { kind: 'timestamp', expression: 'u.created_at', required: true },
    'meta.lastModified': { kind: 'timestamp', expression: 'u.updated_at', required: true },
    groups: {
      kind: 'relation',
      from: 'group_members um JOIN groups ug ON ug.id = um.group_id',
      on: 'um.user_id = u.id',
      fields: {
        value: { kind: 'uuid', expression: 'um.group_id' },
        display: { kind: 'text', expression: 'ug.display_name' },
      },
    },
  },
  indexed: new Set(['id', 'userName', 'externalId']),
  attributes: `(${ATTRIBUTES})`,
  narrowing: {
    'emails.value': (value) =>
      `(${EMAIL_VALUES} ? ${value} OR (NOT u.scim_managed AND u.email = ${value}))`,
  },
};

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
    const [row] = await fixedSql<Row>(
      tx,
      `SELECT ${COLUMNS}${withGroups ? `, ${GROUPS} AS groups` : ''} FROM users u WHERE u.org_id = $1 AND u.id = $2`,
      [orgId, id],
    );
    return row && scimUser(row, withGroups);
  }

  /** A user, locked until the transaction ends. */
  async lock(tx: EntityManager, orgId: string, id: string): Promise<ScimUser | undefined> {
    const [row] = await fixedSql<Row>(
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
  ): Promise<ScimUser> {
    const id = newUuid();
    const details = {
      operation: 'create',
      resource_type: 'User',
      resource_id: id,
      email: user.email,
      scim_token_id: tokenId,
    };
    const [row] = await sql<Row>(tx)`
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
      const [row] = await sql<Row>(tx)`
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

  /** Whether a search reads all users of the organization. */
  isCostly(search: ScimSearch): boolean {
    return isCostly(search, FIELDS);
  }

  /** One page of the users that a search finds; where it is large, only the beginning is read. */
  search(tx: EntityManager, orgId: string, search: ScimSearch): Promise<ScimPage<ListedUser>> {
    const { filter } = search;
    const isOfOne = filter !== undefined && isLookUp(filter, UNIQUE);
    return searchTable<ListedRow, ListedUser>(tx, orgId, search, {
      from: 'users u',
      id: 'u.id',
      orgId: 'u.org_id',
      fields: FIELDS,
      show: isOfOne ? showUser(search) : showUsers(search),
      read: (row) => listedUser(row, search),
    });
  }

  /** Users of the organization, in the order of their ids in the list, without those who are gone; at least one is read. */
  async list(
    tx: EntityManager,
    orgId: string,
    ids: readonly string[],
    parts: UserParts,
  ): Promise<ListedUser[]> {
    const rows = await fixedSql<ListedRow>(
      tx,
      `WITH listed AS (
         SELECT id, NULL::text AS sort_value, place FROM unnest($2::uuid[]) WITH ORDINALITY AS t (id, place)
       )
       ${showUsers(parts)}`,
      [orgId, ids],
    );
    return rows.map((row) => listedUser(row, parts));
  }
}

function listedUser(row: ListedRow, { withRelations }: UserParts): ListedUser {
  const { id, attributes } = row;
  return {
    id,
    user: attributes === null ? undefined : scimUser({ ...row, attributes }, withRelations),
  };
}

function taken(): DomainError {
  return new DomainError(
    'uniqueness',
    'The userName or an e-mail address belongs to another user.',
  );
}

function scimUser(row: Row, withGroups: boolean): ScimUser {
  return {
    id: row.id,
    userName: row.user_name,
    externalId: row.external_id,
    active: row.active,
    email: row.email,
    attributes: row.attributes,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    groups: withGroups ? (row.groups ?? '[]') : undefined,
  };
}
