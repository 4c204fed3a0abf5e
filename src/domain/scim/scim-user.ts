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

/** A user as PostgreSQL answers {@link COLUMNS}. */
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

/** Their attributes: of somebody whom SCIM did not make, what sign-in knows of them. */
export const ATTRIBUTES = `CASE WHEN u.scim_managed THEN u.attributes ELSE jsonb_strip_nulls(jsonb_build_object(
  'displayName', u.name,
  'name', CASE WHEN coalesce(u.name, u.given_name, u.family_name) IS NOT NULL
    THEN jsonb_build_object('formatted', u.name, 'givenName', u.given_name, 'familyName', u.family_name) END,
  'emails', CASE WHEN u.email IS NOT NULL THEN jsonb_build_array(jsonb_build_object('value', u.email, 'primary', true)) END
)) END`;
/** What they are called by: somebody whom SCIM did not make goes by their e-mail. */
export const USER_NAME = `coalesce(u.user_name, u.email, u.id::text)`;
/** The groups they are in, as {@link ScimUser} has them. */
export const GROUPS = `(SELECT json_agg(json_build_object('value', g.id, '$ref', '../Groups/' || g.id, 'display', g.display_name,
    'type', 'direct') ORDER BY g.id)::text
  FROM group_members m JOIN groups g ON g.id = m.group_id WHERE m.user_id = u.id)`;
/** The columns of a user, as `u`, without what may be long; and all of them. */
export const WHO = `u.id, ${USER_NAME} AS user_name, u.external_id, u.active, u.email, u.version, u.created_at, u.updated_at`;
export const COLUMNS = `${WHO}, (${ATTRIBUTES})::text AS attributes`;

/** A user as they are read. */
export function scimUser(row: UserRow, withGroups: boolean): ScimUser {
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
