import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { fixedSql } from '#platform/database/statements/sql.js';
import type { FilterFields } from './filter-fields.js';
import { USER_SCHEMA } from '../language/scim-language.js';
import { searchTable, type ScimPage, type ScimSearch } from './search-table.repository.js';
import { isOfOne, type UniqueKeys } from './unique-key.js';
import {
  OWN_ATTRIBUTES,
  ENTERPRISE_URN,
  GROUPS,
  SHOWN_ATTRIBUTES,
  TAG,
  LISTED_USERS,
  UNIQUE_NAME,
  WHO,
  directoryUser,
  type DirectoryUser,
  type UserRow,
} from '#domain/directory/provisioning/directory-user.js';

/** A user on a page of a list. */
export interface ListedUser {
  readonly id: string;
  /**
   * The user; undefined if a later statement must read this user. The users before this one then
   * reach {@link MOST_TEXT} or, if attributes or groups are read, {@link MOST_AT_ONCE}.
   */
  readonly user: DirectoryUser | undefined;
}

/**
 * Tells which costly parts of listed users (attributes, groups) a response shows. The other parts
 * are not read.
 */
export type UserParts = Pick<ScimSearch, 'withAttributes' | 'withRelations'>;

interface ListedRow extends Omit<UserRow, 'attributes'> {
  attributes: string | null;
  sort_value: string | null;
}

/**
 * The limits of what one statement reads: the approximate number of characters (`MOST_TEXT`), and
 * the number of users whose attributes or groups are read (`MOST_AT_ONCE`).
 */
export const MOST_TEXT = 1 << 20;
export const MOST_AT_ONCE = 200;
/**
 * The SQL that replaces the attributes if a response shows none of them. It only tells if the user
 * has the enterprise extension, which the attribute `schemas` lists.
 */
const NO_ATTRIBUTES = `CASE WHEN u.attributes ? '${ENTERPRISE_URN}' THEN '{"${ENTERPRISE_URN}": {}}' ELSE '{}' END`;

/**
 * Returns the SQL of the columns with values that may be long: the attributes and the groups of a
 * user.
 */
function textsOf({ withAttributes, withRelations }: UserParts): {
  attributes: string;
  groups: string;
} {
  return {
    attributes: withAttributes ? `(${SHOWN_ATTRIBUTES})::text` : NO_ATTRIBUTES,
    groups: withRelations ? GROUPS : 'NULL',
  };
}

/** The columns of listed users that never have long values. */
const LISTED =
  'id, user_name, external_id, active, email, version, created_at, updated_at, sort_value';

/**
 * Returns the SQL that reads the users of the table expression `listed`, in their order, until
 * {@link MOST_TEXT} characters are reached. The first user is always read with all parts. Users
 * after the limit are read without attributes and groups, and are completed later.
 */
function showUsers(parts: UserParts): string {
  const { attributes, groups } = textsOf(parts);
  const isThin = !parts.withAttributes && !parts.withRelations;
  const soon = isThin ? 'true' : `listed.place <= ${MOST_AT_ONCE}`;
  // OFFSET keeps PostgreSQL from computing the texts twice, once for their length.
  return `
    SELECT ${LISTED},
           CASE WHEN before < ${MOST_TEXT} THEN attributes END AS attributes,
           CASE WHEN before < ${MOST_TEXT} THEN groups END AS groups
    FROM (
      SELECT ${LISTED}, place, attributes, groups,
             coalesce(sum(octet_length(attributes) + coalesce(octet_length(groups), 0)) OVER (
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

/**
 * The SQL of the unique index for each attribute that is unique in an organization; `id` needs
 * none, because it is the primary key. `KEYS` are further attributes with an index.
 */
const UNIQUE: UniqueKeys = {
  id: undefined,
  userName: `(u.org_id::text || lower(${UNIQUE_NAME} COLLATE "C"))`,
};
const KEYS: ReadonlySet<string> = new Set(['externalId', 'emails.value', 'groups.value']);

/**
 * The SQL of the e-mail addresses in ASCII lower case. PostgreSQL uses the index
 * `users_email_values` only if this expression is the same as in the index.
 */
const EMAIL_VALUES = `lower(jsonb_path_query_array(u.attributes, '$.emails[*].value')::text COLLATE "C")::jsonb`;
/**
 * The columns and expressions in which the attributes of a user are stored. Filters and the order
 * of results use them.
 */
const FIELDS: FilterFields = {
  resource: USER_SCHEMA,
  columns: {
    id: { kind: 'uuid', expression: 'u.id', required: true },
    userName: { kind: 'text', expression: UNIQUE_NAME, required: true },
    externalId: { kind: 'text', expression: 'u.external_id' },
    active: { kind: 'boolean', expression: 'u.active' },
    'meta.resourceType': { kind: 'text', expression: `'User'::text`, required: true },
    'meta.created': { kind: 'timestamp', expression: 'u.created_at', required: true },
    'meta.lastModified': { kind: 'timestamp', expression: 'u.updated_at', required: true },
    'meta.version': { kind: 'text', expression: `('W/"' || ${TAG} || '"')`, required: true },
    groups: {
      kind: 'relation',
      from: 'group_members um JOIN groups ug ON ug.id = um.group_id',
      on: 'um.user_id = u.id',
      fields: {
        value: { kind: 'uuid', expression: 'um.group_id' },
        display: { kind: 'text', expression: 'ug.display_name' },
        type: { kind: 'text', expression: `'direct'::text` },
      },
    },
  },
  attributes: `(${OWN_ATTRIBUTES})`,
  narrowing: {
    'emails.value': (value) =>
      `(${EMAIL_VALUES} ? ${value} OR (NOT u.scim_managed AND u.email = ${value}))`,
  },
};

/**
 * Returns true if a search of users compares a unique attribute, so that it finds at most one user.
 */
export function isOfOneUser(search: ScimSearch): boolean {
  return isOfOne(search, UNIQUE);
}

/**
 * Reads a page of the users that a search finds. If the users have much text, only the first ones
 * are read with all parts.
 */
export function searchUsers(
  tx: EntityManager,
  orgId: string,
  search: ScimSearch,
): Promise<ScimPage<ListedUser>> {
  const { attributes, groups } = textsOf(search);
  return searchTable<ListedRow, ListedUser>(tx, orgId, search, {
    from: 'users u',
    id: 'u.id',
    orgId: 'u.org_id',
    shown: LISTED_USERS,
    fields: FIELDS,
    unique: UNIQUE,
    keys: KEYS,
    show: showUsers(search),
    columns: `${WHO}, ${attributes} AS attributes, ${groups} AS groups`,
    read: (row) => listedUser(row, search),
  });
}

/**
 * Reads users of the organization in the order of a list of ids; ids without a user are left out.
 * At least one of the found users is read with all parts.
 */
export async function readUsers(
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

function listedUser(row: ListedRow, { withRelations }: UserParts): ListedUser {
  const { id, attributes } = row;
  return {
    id,
    user: attributes === null ? undefined : directoryUser({ ...row, attributes }, withRelations),
  };
}
