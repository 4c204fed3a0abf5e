import type { DomainOfOrganization } from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The organization that owns a domain. An organization can own a domain with or without a proof.
 */
export interface DomainOwner {
  readonly orgId: string;
  /** True if the organization was founded for this domain. */
  readonly isPrimary: boolean;
  /**
   * True if the domain is proven by DNS, by the operator or by the configuration. If false, the
   * organization owns the domain only because a user signed in with an e-mail address in it.
   */
  readonly isProven: boolean;
}

/**
 * Finds the owner of a domain. The caller has locked the domain, so that the owner stays the same
 * until the transaction ends. The proof of the domain may still change.
 */
export async function findOwner(
  tx: EntityManager,
  domain: string,
): Promise<DomainOwner | undefined> {
  const [owner] = await sql<DomainOwner>(tx)`
    SELECT d.org_id AS "orgId", d.is_primary AS "isPrimary", p.org_id IS NOT NULL AS "isProven"
    FROM organization_domains d LEFT JOIN proven_domains p ON p.org_id = d.org_id AND p.domain = d.domain
    WHERE d.domain = ${domain} AND d.verified_at IS NOT NULL`;
  return owner;
}

/**
 * Lists the organizations that own a domain or owned it in the past, except the given one. Such an
 * organization may have members with an e-mail address in the domain.
 */
export async function listOtherOwners(
  tx: EntityManager,
  { orgId, domain }: DomainOfOrganization,
): Promise<string[]> {
  const rows = await sql<{ org_id: string }>(tx)`
    SELECT org_id FROM organization_domains
    WHERE domain = ${domain} AND org_id <> ${orgId} AND (verified_at IS NOT NULL OR unverified_at IS NOT NULL)`;
  return rows.map((row) => row.org_id);
}

/**
 * Takes a domain from its owner; the row stays as an unverified domain. With `asserting`, this is
 * done only if the owner has no proof of the domain. With `any owner`, it is always done, because
 * the operator releases the domain.
 *
 * @returns false if the organization does not own the domain, or, with `asserting`, has proven it
 */
export async function takeDomain(
  tx: EntityManager,
  { orgId, domain }: DomainOfOrganization,
  now: Date,
  from: 'asserting' | 'any owner',
): Promise<boolean> {
  const taken = await sql<{ domain: string }>(tx)`
    UPDATE organization_domains d
    SET verified_at = NULL, unverified_at = ${now}, next_check_at = NULL, assigned_at = NULL, is_vouched = false, failures = 0
    WHERE d.org_id = ${orgId} AND d.domain = ${domain} AND d.verified_at IS NOT NULL
      AND (${from === 'any owner'}::boolean
           OR (d.next_check_at IS NULL AND d.assigned_at IS NULL AND NOT d.is_vouched))
    RETURNING d.domain`;
  return taken.length === 1;
}

/**
 * Deletes the row of a domain that the operator has released. The primary domain of an organization
 * keeps its row.
 */
export async function dropReleased(
  tx: EntityManager,
  { orgId, domain }: DomainOfOrganization,
): Promise<void> {
  await sql(tx)`
    DELETE FROM organization_domains
    WHERE org_id = ${orgId} AND domain = ${domain} AND NOT is_primary AND verified_at IS NULL`;
}

/**
 * Records that the operator assigned a domain to an organization. The domain counts as proven, and
 * no daily check looks for its DNS record. One statement with the unique index of verified domains
 * decides, so that a domain has one owner.
 *
 * @returns false if another organization owns the domain
 */
export async function markAssigned(
  tx: EntityManager,
  { orgId, domain }: DomainOfOrganization,
  now: Date,
): Promise<boolean> {
  const assigned = await sql<{ domain: string }>(tx)`
    INSERT INTO organization_domains AS d (org_id, domain, verified_at, assigned_at, created_at)
    SELECT ${orgId}, ${domain}, ${now}::timestamptz, ${now}::timestamptz, ${now}::timestamptz
    WHERE NOT EXISTS (SELECT FROM organization_domains o
                      WHERE o.domain = ${domain} AND o.org_id <> ${orgId} AND o.verified_at IS NOT NULL)
    ON CONFLICT (org_id, domain) DO UPDATE
    SET verified_at = coalesce(d.verified_at, EXCLUDED.verified_at), assigned_at = EXCLUDED.assigned_at, unverified_at = NULL,
        next_check_at = NULL, failures = 0
    RETURNING d.domain`;
  return assigned.length === 1;
}

/** A user whose row is locked because a domain changes. */
export interface UserOfDomain {
  readonly id: string;
  readonly orgId: string | null;
  /**
   * False for the one additional user of {@link lockUsersOfDomain}, whose e-mail address is in
   * another domain.
   */
  readonly inDomain: boolean;
}

/**
 * Locks the users with an e-mail address in a domain until the transaction ends. These are users of
 * some organizations and, if `outsiders` is true, users without an organization. The rows are
 * locked in the order of their ids, so that two calls cannot deadlock. One additional user can be
 * locked in the same order.
 *
 * @param also the id of the additional user; null if there is none
 */
export async function lockUsersOfDomain(
  tx: EntityManager,
  domain: string,
  of: { readonly orgIds: readonly string[]; readonly outsiders: boolean },
  also: string | null,
): Promise<UserOfDomain[]> {
  const inDomain = fragment`split_part(email, '@', -1) = ${domain}`;
  return sql<UserOfDomain>(tx)`
    SELECT id, org_id AS "orgId", ${inDomain} IS TRUE AS "inDomain" FROM users
    WHERE id IN (SELECT id FROM users WHERE org_id = ANY (${of.orgIds}::uuid[]) AND ${inDomain}
                 UNION ALL SELECT id FROM users WHERE ${of.outsiders}::boolean AND org_id IS NULL AND ${inDomain}
                 UNION ALL SELECT ${also}::uuid)
    ORDER BY id FOR UPDATE`;
}

/**
 * Removes the bindings of locked users to the identities by which they signed in, and records an
 * audit event for each user. So at their next sign-in they join the organization that owns the
 * domain now.
 */
export async function unbindUsersOfDomain(
  tx: EntityManager,
  users: readonly UserOfDomain[],
  details: Readonly<Record<string, unknown>>,
  origin: AuditOrigin,
): Promise<void> {
  const found = await sql<{ user_id: string; org_id: string; issuer: string; tenant: string }>(tx)`
    DELETE FROM identities i USING users u
    WHERE i.user_id = ANY (${users.map(({ id }) => id)}::uuid[]) AND u.id = i.user_id
    RETURNING i.user_id, u.org_id, i.issuer, i.tenant`;
  if (found.length === 0) return;
  await sql(tx)`${recordAudit(
    {
      id: fragment`e.event_id`,
      type: 'identity_unbound',
      actorId: null,
      subjectId: fragment`e.user_id`,
      orgId: fragment`e.org_id`,
      origin,
      details: fragment`${JSON.stringify(details)}::jsonb
        || jsonb_build_object('issuer', e.issuer, 'tenant', e.tenant, 'access_ended', true)`,
    },
    fragment`
      FROM unnest(${found.map(() => newUuid())}::uuid[], ${found.map((one) => one.user_id)}::uuid[],
                  ${found.map((one) => one.org_id)}::uuid[], ${found.map((one) => one.issuer)}::text[],
                  ${found.map((one) => one.tenant)}::text[]) AS e (event_id, user_id, org_id, issuer, tenant)`,
  )}`;
}

/** A configured identity provider, and the domains of e-mail addresses that its users may have. */
export interface NamingProvider {
  /**
   * The issuer of the provider. It contains `{tenantid}` if each tenant has an issuer of its own.
   */
  readonly issuer: string;
  /** The domains; undefined for a provider that the configuration does not limit to domains. */
  readonly domains: readonly string[] | undefined;
}

/**
 * Lists the primary domains whose column `is_vouched` differs from the present configuration. The
 * column states if the configuration lists the domain for the provider through which the
 * organization was founded. If several configured providers have the same issuer, each of them must
 * list the domain.
 */
export async function listChangedVouching(
  tx: EntityManager,
  providers: readonly NamingProvider[],
): Promise<(DomainOfOrganization & { readonly isNamed: boolean })[]> {
  return sql<DomainOfOrganization & { readonly isNamed: boolean }>(tx)`
    SELECT d.org_id AS "orgId", d.domain, n.is_named AS "isNamed"
    FROM organization_domains d
    CROSS JOIN LATERAL (
      SELECT coalesce(bool_and(coalesce(EXISTS (
        SELECT FROM unnest(c.domains) AS pattern
        WHERE d.domain = pattern OR (starts_with(pattern, '*.') AND right(d.domain, length(pattern) - 1) = substr(pattern, 2))
      ), false)), false) AS is_named
      FROM organization_providers p
      JOIN jsonb_to_recordset(${JSON.stringify(providers)}::jsonb) AS c (issuer text, domains text[])
        ON replace(c.issuer, '{tenantid}', p.tenant) = p.issuer
      WHERE p.org_id = d.org_id AND p.founding
    ) n
    WHERE d.is_primary AND d.verified_at IS NOT NULL AND d.is_vouched <> n.is_named
    ORDER BY d.org_id`;
}

/**
 * Records if the configuration lists the primary domain of an organization for the provider through
 * which the organization was founded. Returns false if nothing changed, because the same is
 * recorded already or the organization has lost the domain.
 */
export async function setVouched(
  tx: EntityManager,
  { orgId, domain }: DomainOfOrganization,
  isNamed: boolean,
): Promise<boolean> {
  const changed = await sql<{ domain: string }>(tx)`
    UPDATE organization_domains SET is_vouched = ${isNamed}
    WHERE org_id = ${orgId} AND domain = ${domain} AND is_primary AND verified_at IS NOT NULL AND is_vouched <> ${isNamed}
    RETURNING domain`;
  return changed.length === 1;
}
