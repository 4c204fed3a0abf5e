import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** An organization with the id and the name by which an operator can tell organizations apart. */
export interface KnownOrganization {
  readonly id: string;
  readonly name: string;
}

/** A domain of an organization, as the operator of the service sees it. */
export interface KnownDomain {
  readonly domain: string;
  readonly organization: KnownOrganization;
  readonly isPrimary: boolean;
  /** True if the organization owns the domain now. */
  readonly isOwned: boolean;
  /**
   * The proof that the organization owns the domain: a DNS record, an assignment by the operator,
   * or an identity provider that vouches for it. Null if the organization does not own the domain,
   * or owns it only because a user signed in with an e-mail address in the domain.
   */
  readonly proof: 'dns' | 'operator' | 'provider' | null;
  /** The number of users of the organization with an e-mail address in the domain. */
  readonly users: number;
}

/** The most domains that a list contains. */
export const MOST_DOMAINS_LISTED = 1000;

interface Row {
  domain: string;
  org_id: string;
  name: string;
  is_primary: boolean;
  is_owned: boolean;
  proof: KnownDomain['proof'];
  users: number;
}

/**
 * Lists domains with their organizations, sorted by the name of the domain. `org` is the id or a
 * verified domain of an organization. A field of the query that is undefined sets no condition.
 */
export async function listDomains(
  tx: EntityManager,
  {
    org,
    domain,
    owned = false,
  }: { readonly org?: string | undefined; readonly domain?: string; readonly owned?: boolean },
): Promise<KnownDomain[]> {
  const rows = await sql<Row>(tx)`
    SELECT d.domain, d.org_id, o.name, d.is_primary, d.verified_at IS NOT NULL AS is_owned,
           CASE WHEN d.verified_at IS NULL THEN NULL WHEN d.assigned_at IS NOT NULL THEN 'operator'
                WHEN d.next_check_at IS NOT NULL THEN 'dns' WHEN d.is_vouched THEN 'provider' END AS proof,
           (SELECT count(*)::int FROM users u WHERE u.org_id = d.org_id AND split_part(u.email, '@', -1) = d.domain) AS users
    FROM organization_domains d JOIN organizations o ON o.id = d.org_id
    WHERE (${domain ?? null}::text IS NULL OR d.domain = ${domain ?? null}::text)
      AND (NOT ${owned}::boolean OR d.verified_at IS NOT NULL)
      AND (${org ?? null}::text IS NULL OR d.org_id::text = ${org ?? null}::text
        OR d.org_id = (SELECT v.org_id FROM organization_domains v
                       WHERE v.domain = ${org ?? null}::text AND v.verified_at IS NOT NULL))
    ORDER BY d.domain, d.verified_at NULLS LAST, d.org_id LIMIT ${MOST_DOMAINS_LISTED}`;
  return rows.map((row) => ({
    domain: row.domain,
    organization: { id: row.org_id, name: row.name },
    isPrimary: row.is_primary,
    isOwned: row.is_owned,
    proof: row.proof,
    users: row.users,
  }));
}

/**
 * Finds an organization by its id or by one of its verified domains; undefined if there is none.
 */
export async function findOrganization(
  tx: EntityManager,
  named: string,
): Promise<KnownOrganization | undefined> {
  const [found] = await sql<KnownOrganization>(tx)`
    SELECT id, name FROM organizations
    WHERE id::text = ${named} OR id = (SELECT org_id FROM organization_domains
                                       WHERE domain = ${named} AND verified_at IS NOT NULL)`;
  return found;
}
