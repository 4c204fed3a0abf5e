import type { DomainOfOrganization } from '#domain/access-revocation/revocable.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Checked } from './domain-state.js';

/**
 * The ways in which a domain is proven. `dns`: by its DNS record. `operator`: by a decision of the
 * operator. `provider`: by the configuration of the provider through which the organization was
 * founded.
 */
export type DomainProof = 'dns' | 'operator' | 'provider';

/** A domain of an organization, with its state and proof. */
export interface OrganizationDomain {
  readonly domain: string;
  readonly isPrimary: boolean;
  /**
   * The token in the DNS record. Null for a primary domain of an earlier version, and for a domain
   * that the organization did not have when the operator assigned it.
   */
  readonly token: string | null;
  /**
   * The way in which the domain is proven. Null for a pending or unverified domain. It is also null
   * for a domain that the organization owns only because a user signed in with an e-mail address in
   * it.
   */
  readonly proof: DomainProof | null;
  readonly addedBy: string | null;
  readonly createdAt: Date;
  readonly verifiedAt: Date | null;
  readonly unverifiedAt: Date | null;
  readonly lastCheckedAt: Date | null;
  readonly failures: number;
}

/** A domain that is proven by DNS and whose daily check is due. */
export interface DueDomain {
  readonly orgId: string;
  readonly domain: string;
  readonly token: string;
  readonly failures: number;
  readonly lastProvenAt: Date;
  /**
   * The time of the last check. If this time has changed before the result is recorded, another
   * process has checked the domain, and the result is dropped.
   */
  readonly lastCheckedAt: Date;
}

interface Row {
  domain: string;
  is_primary: boolean;
  token: string | null;
  proof: DomainProof | null;
  added_by: string | null;
  created_at: Date;
  verified_at: Date | null;
  unverified_at: Date | null;
  last_checked_at: Date | null;
  failures: number;
}

/**
 * The SQL list of the columns of {@link Row}. A value of `next_check_at` means a proof by DNS,
 * because only domains with such a proof are checked again.
 */
const COLUMNS = fragment`domain, is_primary, token, added_by, created_at, verified_at, unverified_at, last_checked_at, failures,
    CASE WHEN verified_at IS NULL THEN NULL WHEN assigned_at IS NOT NULL THEN 'operator' WHEN next_check_at IS NOT NULL THEN 'dns'
         WHEN is_vouched THEN 'provider' END AS proof`;

/** Lists the domains of an organization: the primary one first, then by age. */
export async function listDomains(tx: EntityManager, orgId: string): Promise<OrganizationDomain[]> {
  const rows = await sql<Row>(tx)`
    SELECT ${COLUMNS}
    FROM organization_domains WHERE org_id = ${orgId}
    ORDER BY is_primary DESC, created_at, domain`;
  return rows.map(organizationDomain);
}

/** Finds a domain of an organization; undefined if the organization does not have it. */
export async function findDomain(
  tx: EntityManager,
  orgId: string,
  domain: string,
): Promise<OrganizationDomain | undefined> {
  const [row] = await sql<Row>(tx)`
    SELECT ${COLUMNS}
    FROM organization_domains WHERE org_id = ${orgId} AND domain = ${domain}`;
  return row && organizationDomain(row);
}

/** Adds a pending domain. Returns undefined if the organization has the domain already. */
export async function insertDomain(
  tx: EntityManager,
  added: {
    readonly orgId: string;
    readonly domain: string;
    readonly token: string;
    readonly addedBy: string;
    readonly now: Date;
  },
): Promise<OrganizationDomain | undefined> {
  const [row] = await sql<Row>(tx)`
    INSERT INTO organization_domains (org_id, domain, token, added_by, created_at)
    VALUES (${added.orgId}, ${added.domain}, ${added.token}, ${added.addedBy}, ${added.now})
    ON CONFLICT (org_id, domain) DO NOTHING
    RETURNING ${COLUMNS}`;
  return row && organizationDomain(row);
}

/**
 * Deletes a domain that an admin removes from the organization. The primary domain stays. A domain
 * that the operator assigned is recorded as once proven, like one that was proven by DNS. So no
 * later sign-in founds an organization for it.
 *
 * @returns false if the organization has no such domain
 */
export async function deleteDomain(
  tx: EntityManager,
  orgId: string,
  domain: string,
): Promise<boolean> {
  const deleted = await sql<{ domain: string }>(tx)`
    WITH deleted AS (
      DELETE FROM organization_domains WHERE org_id = ${orgId} AND domain = ${domain} AND NOT is_primary
      RETURNING domain, verified_at IS NOT NULL AND assigned_at IS NOT NULL AS was_assigned
    ), noted AS (
      INSERT INTO dns_proven_domains (domain) SELECT domain FROM deleted WHERE was_assigned ON CONFLICT DO NOTHING
    )
    SELECT domain FROM deleted`;
  return deleted.length === 1;
}

/**
 * Returns the token for the DNS record of a domain. If the domain has none, the function stores the
 * given one. Returns undefined if the organization does not have the domain.
 */
export async function ensureToken(
  tx: EntityManager,
  { orgId, domain }: DomainOfOrganization,
  token: string,
): Promise<string | undefined> {
  const [row] = await sql<{ token: string }>(tx)`
    UPDATE organization_domains SET token = coalesce(token, ${token})
    WHERE org_id = ${orgId} AND domain = ${domain} RETURNING token`;
  return row?.token;
}

/**
 * Records the proof of a domain, which its organization owns from then on. One statement with the
 * unique index of verified domains decides, so that if two organizations have a proof, only one
 * gets the domain.
 *
 * @returns false if another organization owns the domain, or the domain was removed after the
 *   caller read it
 */
export async function markProven(
  tx: EntityManager,
  { orgId, domain, token }: Pick<DueDomain, 'orgId' | 'domain' | 'token'>,
  now: Date,
  nextCheckAt: Date,
): Promise<boolean> {
  const proven = await sql<{ domain: string }>(tx)`
    WITH proven AS (
      UPDATE organization_domains d
      SET verified_at = coalesce(d.verified_at, ${now}), unverified_at = NULL, failures = 0,
          last_checked_at = ${now}, last_proven_at = ${now}, next_check_at = ${nextCheckAt}
      WHERE d.org_id = ${orgId} AND d.domain = ${domain} AND d.token = ${token}
        AND NOT EXISTS (SELECT FROM organization_domains o
                        WHERE o.domain = ${domain} AND o.org_id <> ${orgId} AND o.verified_at IS NOT NULL)
      RETURNING d.domain
    ), noted AS (
      INSERT INTO dns_proven_domains (domain) SELECT domain FROM proven ON CONFLICT DO NOTHING
    )
    SELECT domain FROM proven`;
  return proven.length === 1;
}

/**
 * Lists verified domains whose check is due, in the order of organization and domain, after the
 * given pair. So one run checks no domain twice, even if a result could not be recorded.
 */
export async function listDue(
  tx: EntityManager,
  now: Date,
  after: Pick<DueDomain, 'orgId' | 'domain'>,
  most: number,
): Promise<DueDomain[]> {
  const rows = await sql<{
    org_id: string;
    domain: string;
    token: string;
    failures: number;
    last_proven_at: Date;
    last_checked_at: Date;
  }>(tx)`
    SELECT org_id, domain, token, failures, last_proven_at, last_checked_at
    FROM organization_domains
    WHERE next_check_at <= ${now} AND (org_id, domain) > (${after.orgId}::uuid, ${after.domain}::text)
      AND verified_at IS NOT NULL AND token IS NOT NULL
    ORDER BY org_id, domain LIMIT ${most}`;
  return rows.map((row) => ({
    orgId: row.org_id,
    domain: row.domain,
    token: row.token,
    failures: row.failures,
    lastProvenAt: row.last_proven_at,
    lastCheckedAt: row.last_checked_at,
  }));
}

/**
 * Records a check after which the domain is still verified.
 *
 * @returns false if the domain was checked, removed or added again since it was read
 */
export async function recordCheck(
  tx: EntityManager,
  due: DueDomain,
  { failures, lastProvenAt, nextCheckAt }: Checked,
  now: Date,
): Promise<boolean> {
  const recorded = await sql<{ domain: string }>(tx)`
    UPDATE organization_domains
    SET failures = ${failures}, last_checked_at = ${now}, last_proven_at = ${lastProvenAt}, next_check_at = ${nextCheckAt}
    WHERE ${unchanged(due)}
    RETURNING domain`;
  return recorded.length === 1;
}

/**
 * Records the check that ends the proof of a domain. Returns false and changes nothing if the
 * domain was checked, removed or added again since it was read. A primary domain stays with its
 * organization without a proof; any other domain becomes unverified.
 */
export async function markUnverified(
  tx: EntityManager,
  due: DueDomain,
  failures: number,
  now: Date,
): Promise<boolean> {
  const lost = await sql<{ domain: string }>(tx)`
    UPDATE organization_domains
    SET failures = CASE WHEN is_primary THEN 0 ELSE ${failures}::int END,
        verified_at = CASE WHEN is_primary THEN verified_at END,
        unverified_at = CASE WHEN NOT is_primary THEN ${now}::timestamptz END, last_checked_at = ${now}, next_check_at = NULL
    WHERE ${unchanged(due)}
    RETURNING domain`;
  return lost.length === 1;
}

/** Returns the SQL condition that a domain has not changed since the check read it. */
function unchanged({ orgId, domain, token, lastCheckedAt }: DueDomain): SqlFragment {
  return fragment`org_id = ${orgId} AND domain = ${domain} AND token = ${token} AND last_checked_at = ${lastCheckedAt}
      AND verified_at IS NOT NULL`;
}

/** Lists the users of an organization whose e-mail address is in a domain. */
export async function listUsersOfDomain(
  tx: EntityManager,
  orgId: string,
  domain: string,
): Promise<string[]> {
  const rows = await sql<{ id: string }>(tx)`
    SELECT id FROM users WHERE org_id = ${orgId} AND split_part(email, '@', -1) = ${domain}`;
  return rows.map(({ id }) => id);
}

/**
 * Takes the lock that lets one process at a time run the daily checks. Returns false if another
 * process holds it. The lock belongs to the database connection.
 *
 * @param tx the manager of one connection, which must also release the lock
 */
export async function lockRechecks(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ taken: boolean }>(tx)`
    SELECT pg_try_advisory_lock(${ADVISORY_LOCKS.domainChecks}) AS taken`;
  return row?.taken ?? false;
}

/** Releases the lock of {@link lockRechecks}. */
export async function unlockRechecks(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT pg_advisory_unlock(${ADVISORY_LOCKS.domainChecks})`;
}

function organizationDomain(row: Row): OrganizationDomain {
  return {
    domain: row.domain,
    isPrimary: row.is_primary,
    token: row.token,
    proof: row.proof,
    addedBy: row.added_by,
    createdAt: row.created_at,
    verifiedAt: row.verified_at,
    unverifiedAt: row.unverified_at,
    lastCheckedAt: row.last_checked_at,
    failures: row.failures,
  };
}
