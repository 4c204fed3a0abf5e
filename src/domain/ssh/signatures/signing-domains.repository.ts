import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { isUuid } from '#platform/text/single-line.js';

/**
 * A domain of an organization. The members of the organization get certificates for e-mail
 * addresses in the domain.
 */
export interface SigningDomain {
  readonly domain: string;
  /** The time since which the organization has owned the domain without a break. */
  readonly ownedSince: Date;
}

/**
 * Reads the domains that an organization owns now. Only its members get certificates with e-mail
 * addresses in these domains; the SQL function `address_ownership` decides so at each issuance.
 *
 * @returns undefined if there is no such organization
 */
export async function signingDomains(
  tx: EntityManager,
  organization: string,
): Promise<SigningDomain[] | undefined> {
  if (!isUuid(organization)) return undefined;
  const rows = await sql<{ domain: string | null; verified_at: Date | null }>(tx)`
    SELECT d.domain, d.verified_at
    FROM organizations o
    LEFT JOIN organization_domains d ON d.org_id = o.id AND d.verified_at IS NOT NULL
    WHERE o.id = ${organization}::uuid AND ${CONFIRMED}
    ORDER BY d.domain`;
  if (rows.length === 0) return undefined;
  return rows.flatMap(({ domain, verified_at: ownedSince }) =>
    domain === null || ownedSince === null ? [] : [{ domain, ownedSince }],
  );
}
