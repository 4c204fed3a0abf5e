import { hash } from 'node:crypto';

/**
 * The URN of the enterprise extension of SCIM (RFC 7643 §4.3). Its attributes are in
 * `users.attributes` under this key.
 */
export const ENTERPRISE_URN = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

/** A user of an organization as SCIM shows the user to the identity provider. */
export interface DirectoryUser {
  readonly id: string;
  readonly userName: string;
  readonly externalId: string | null;
  readonly active: boolean;
  readonly email: string | null;
  /**
   * All other attributes as the text of a JSON object. `$ref` is not stored but computed on
   * reading, as `../Users/{id}`.
   */
  readonly attributes: string;
  /** The version of the row, which rises with each change. */
  readonly version: string;
  /**
   * The text in the entity tag, which changes with everything that clients can see of the user.
   * Undefined if the groups were not read, because the tag depends on them.
   */
  readonly tag: string | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** The groups of the user as the text of a JSON array; undefined if they were not read. */
  readonly groups: string | undefined;
}

/** A row with the columns of {@link COLUMNS}. */
export interface UserRow {
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

/**
 * The SQL of the attributes of a user. If SCIM does not manage the user, the attributes are the
 * name and e-mail address that the identity provider sent at the sign-in.
 */
export const OWN_ATTRIBUTES = `CASE WHEN u.scim_managed THEN u.attributes ELSE jsonb_strip_nulls(jsonb_build_object(
  'displayName', u.name,
  'name', CASE WHEN coalesce(u.name, u.given_name, u.family_name) IS NOT NULL
    THEN jsonb_build_object('formatted', u.name, 'givenName', u.given_name, 'familyName', u.family_name) END,
  'emails', CASE WHEN u.email IS NOT NULL THEN jsonb_build_array(
    jsonb_build_object('value', u.email, 'type', 'work', 'primary', true)) END
)) END`;
/**
 * Returns the SQL of the name by which other resources, such as groups, show a user: the user's
 * name, userName (only of a SCIM record), e-mail address or id, whichever exists first.
 *
 * @param user the alias of the table `users` in the statement
 */
export function shownName(user: string): string {
  return `coalesce(${user}.name, CASE WHEN ${user}.scim_managed THEN ${user}.user_name END, ${user}.email, ${user}.id::text)`;
}
const NAME = shownName('m');
const MANAGER = `{${ENTERPRISE_URN},manager}`;
const MANAGER_VALUE = `u.attributes #>> '{${ENTERPRISE_URN},manager,value}'`;
/**
 * The SQL that finds the manager of a user `u` in the same organization. The id of a manager in
 * another service matches no user.
 */
const THEIR_MANAGER = `FROM users m WHERE m.org_id = u.org_id
  AND m.id = CASE WHEN ${MANAGER_VALUE} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN (${MANAGER_VALUE})::uuid END`;
/** The SQL of the name of the manager; NULL if the manager is not a user of the organization. */
const MANAGER_NAME = `(SELECT ${NAME} ${THEIR_MANAGER})`;
/**
 * The SQL of the attributes of a user, completed by the URL (`$ref`) and name of the manager (RFC
 * 7643 §4.3).
 */
export const SHOWN_ATTRIBUTES = `CASE WHEN ${MANAGER_VALUE} IS NULL THEN ${OWN_ATTRIBUTES} ELSE jsonb_set(
  u.attributes, '${MANAGER}', (u.attributes #> '${MANAGER}') - '$ref' || coalesce(
    (SELECT jsonb_build_object('$ref', '../Users/' || m.id, 'displayName', ${NAME}) ${THEIR_MANAGER}), '{}')
) END`;
/**
 * The SQL of the value that the unique index of userNames has for a user. For a member who signed
 * in with an e-mail address of a SCIM record (a twin), it is the id of the member. So the record
 * can have the address as its userName.
 */
export const UNIQUE_NAME = `coalesce(u.user_name, u.email, u.id::text)`;
/**
 * The SQL of the userName that clients see. For a user that SCIM does not manage, it is the e-mail
 * address.
 */
const USER_NAME = `CASE WHEN u.scim_managed THEN ${UNIQUE_NAME} ELSE coalesce(u.email, u.id::text) END`;
/**
 * The SQL condition of the users that lists and filters show; `$1` is the id of the organization.
 * Twins (members who signed in with an e-mail address of a SCIM record) are left out, because the
 * record is the same person. The subquery is computed once for each statement.
 */
export const LISTED_USERS = `u.id NOT IN (SELECT t.user_id FROM record_ties t WHERE t.org_id = $1 AND t.kind = 'twin')`;
/** The SQL of the groups of a user, in the form of {@link DirectoryUser.groups}. */
export const GROUPS = `(SELECT json_agg(json_build_object('value', g.id, '$ref', '../Groups/' || g.id, 'display', g.display_name,
    'type', 'direct') ORDER BY g.id)::text
  FROM group_members m JOIN groups g ON g.id = m.group_id WHERE m.user_id = u.id)`;
/**
 * The SQL of the text in the entity tag of {@link DirectoryUser}, for filters. It is the version of
 * the row and a digest of the groups and the manager, whose names can change without a new version.
 */
export const TAG = `(u.version || coalesce('-' || left(encode(sha256(convert_to(nullif(concat(
  ${GROUPS}, CASE WHEN ${MANAGER_NAME} IS NOT NULL THEN (${SHOWN_ATTRIBUTES})::text END), ''), 'UTF8')), 'hex'), 16), ''))`;
/** The short columns of a user `u`, without the attributes, which {@link COLUMNS} adds. */
export const WHO = `u.id, ${USER_NAME} AS user_name, u.external_id, u.active, u.email, u.version, u.created_at, u.updated_at`;
export const COLUMNS = `${WHO}, (${SHOWN_ATTRIBUTES})::text AS attributes`;

/** Makes a {@link DirectoryUser} from a row of {@link COLUMNS}. */
export function directoryUser(row: UserRow, withGroups: boolean): DirectoryUser {
  return {
    id: row.id,
    userName: row.user_name,
    externalId: row.external_id,
    active: row.active,
    email: row.email,
    attributes: row.attributes,
    version: row.version,
    tag: withGroups ? tagOf(row) : undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    groups: withGroups ? (row.groups ?? '[]') : undefined,
  };
}

/**
 * The beginning of the manager's URL (`$ref`) in the JSON of a user, by which the code finds it. No
 * other text of the JSON contains it, because quotes within a text are escaped.
 */
const MANAGER_ADDRESS = '"$ref": "../Users/';

/**
 * Returns the text in the entity tag of a user. The version of the row is not enough, because the
 * names of groups and of the manager can change without a new version.
 */
function tagOf({ version, groups, attributes }: UserRow): string {
  const others = (groups ?? '') + (attributes.includes(MANAGER_ADDRESS) ? attributes : '');
  return others === '' ? version : `${version}-${hash('sha256', others).slice(0, 16)}`;
}

/**
 * Makes the URLs (`$ref`) in the JSON of a user absolute (RFC 7643 §2.3.7), because the base URL is
 * not stored.
 */
export function withAddresses(json: string, base: string): string {
  return json
    .replaceAll(MANAGER_ADDRESS, `"$ref": "${base}/Users/`)
    .replaceAll('"$ref" : "../Groups/', `"$ref": "${base}/Groups/`);
}
