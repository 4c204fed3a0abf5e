import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** A user as the operator of the service sees the user. */
export interface KnownPerson {
  readonly id: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly active: boolean;
  readonly isOrgAdmin: boolean;
  /**
   * True for an admin who can act as one: the account is active, and its e-mail address is in a
   * domain that the organization owns.
   */
  readonly isActingAdmin: boolean;
  readonly scimManaged: boolean;
  readonly keys: number;
  /** The organization of the user; null if the user has none. */
  readonly organization: PersonOrganization | null;
}

/**
 * The organization of a user, with the id, the name and the domains by which an operator can tell
 * organizations apart.
 */
export interface PersonOrganization {
  readonly id: string;
  readonly name: string;
  /** The verified domains of the organization, the primary one first. */
  readonly domains: readonly string[];
}

/** A query of the operator for people. A field that is undefined sets no condition. */
export interface PeopleQuery {
  readonly email?: string | undefined;
  /** The id or a verified domain of the organization; `none` for users without an organization. */
  readonly organization?: string | undefined;
  readonly adminsOnly?: boolean;
}

/** The most people that a query returns. */
export const MOST_PEOPLE = 1000;

interface Row {
  id: string;
  email: string | null;
  name: string | null;
  active: boolean;
  is_org_admin: boolean;
  acting: boolean;
  scim_managed: boolean;
  keys: number;
  org_id: string | null;
  org_name: string | null;
  domains: string[] | null;
}

/** Finds people, sorted by the names of their organizations and by their e-mail addresses. */
export async function findPeople(
  tx: EntityManager,
  { email, organization, adminsOnly = false }: PeopleQuery,
): Promise<KnownPerson[]> {
  const rows = await sql<Row>(tx)`
    SELECT u.id, u.email, u.name, u.active, u.is_org_admin, u.scim_managed, u.org_id, o.name AS org_name,
           is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active) AS acting,
           (SELECT count(*)::int FROM authenticators k WHERE k.user_id = u.id) AS keys,
           (SELECT array_agg(d.domain ORDER BY d.is_primary DESC, d.domain) FROM organization_domains d
            WHERE d.org_id = u.org_id AND d.verified_at IS NOT NULL) AS domains
    FROM users u LEFT JOIN organizations o ON o.id = u.org_id
    WHERE (${email ?? null}::text IS NULL OR u.email = ${email ?? null}::text)
      AND (NOT ${adminsOnly}::boolean OR u.is_org_admin)
      AND (${organization ?? null}::text IS NULL
        OR coalesce(u.org_id::text, 'none') = ${organization ?? null}::text
        OR u.org_id = (SELECT d.org_id FROM organization_domains d
                       WHERE d.domain = ${organization ?? null}::text AND d.verified_at IS NOT NULL))
    ORDER BY o.name NULLS LAST, u.org_id, u.email, u.id LIMIT ${MOST_PEOPLE}`;
  return rows.map(person);
}

function person(row: Row): KnownPerson {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    active: row.active,
    isOrgAdmin: row.is_org_admin,
    isActingAdmin: row.acting,
    scimManaged: row.scim_managed,
    keys: row.keys,
    organization:
      row.org_id === null
        ? null
        : { id: row.org_id, name: row.org_name ?? '', domains: row.domains ?? [] },
  };
}
