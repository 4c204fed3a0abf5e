import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { newUuid, systemRandom } from '#platform/clock/random.js';
import { sql } from '#platform/database/statements/sql.js';
import type { Membership } from './membership.js';

/** The facts of an organization that a sign-in reads. */
export interface Organization {
  readonly id: string;
  readonly membership: Membership;
  /** True when the organization accepts sign-ins through the given provider and tenant. */
  readonly acceptsProvider: boolean;
}

/** The settings of an organization that its admins can change. */
export interface OrganizationSettings {
  readonly name: string;
  readonly membership: Membership;
  /** True if its people may approve device codes. */
  readonly device_grant: boolean;
  /** `listed`: tokens for AWS are given only for roles that are targets of the organization. */
  readonly aws_roles: 'any' | 'listed';
}

/** An identity provider: the issuer, and the tenant when the issuer serves many. */
export interface ProviderTenant {
  readonly issuer: string;
  readonly tenant: string;
}

/** Organizations, the domains they own and the providers they accept. */
@Injectable()
export class OrganizationsRepository {
  /**
   * Finds the organization that owns a domain, and checks if it accepts a provider and tenant. An
   * accepted provider is locked as in {@link OrganizationsRepository.holdProvider}.
   */
  async findByDomain(
    tx: EntityManager,
    domain: string,
    provider: ProviderTenant,
  ): Promise<Organization | undefined> {
    const [row] = await sql<{ id: string; membership: Membership }>(tx)`
      SELECT o.id, o.membership
      FROM organization_domains d JOIN organizations o ON o.id = d.org_id
      WHERE d.domain = ${domain} AND d.verified_at IS NOT NULL`;
    return row && { ...row, acceptsProvider: await this.holdProvider(tx, row.id, provider) };
  }

  /**
   * Returns true when an organization accepts a provider and tenant, and keeps it true until the
   * transaction ends. A withdrawal of the provider waits, and then sees everything that the
   * transaction has made. The lock comes before the lock on the row of a user, as in a withdrawal.
   */
  async holdProvider(
    tx: EntityManager,
    orgId: string,
    { issuer, tenant }: ProviderTenant,
  ): Promise<boolean> {
    const held = await sql<{ id: string }>(tx)`
      SELECT id FROM organization_providers
      WHERE org_id = ${orgId} AND issuer = ${issuer} AND tenant = ${tenant} FOR KEY SHARE`;
    return held.length === 1;
  }

  /**
   * Locks a domain until the transaction ends. So of two first users at once, one founds the
   * organization and the other joins it. With a unique index alone, the second sign-in would fail.
   */
  async lockDomain(tx: EntityManager, domain: string): Promise<void> {
    await sql(tx)`SELECT pg_advisory_xact_lock(hashtextextended('organization ' || ${domain}, 0))`;
  }

  /**
   * Locks the directory of an organization until the transaction ends. Acts that found, enroll,
   * part or readmit a member, or change an address or `active` of one, follow each other. The lock
   * comes before those on rows of users, and after those on a domain and a provider. The facts that
   * decide are read by later statements, which see what earlier acts did.
   */
  async lockDirectory(tx: EntityManager, orgId: string): Promise<void> {
    await sql(tx)`SELECT org_id FROM directory_locks WHERE org_id = ${orgId} FOR UPDATE`;
  }

  /**
   * Creates the organization of a domain. It accepts the provider and tenant of its first user.
   *
   * @param isVouched true if the operator has named the domain for the provider: the domain is
   *   proven, not only asserted
   */
  async create(
    tx: EntityManager,
    domain: string,
    made: ProviderTenant,
    isVouched: boolean,
  ): Promise<string> {
    const id = newUuid();
    await sql(tx)`
      WITH organization AS (INSERT INTO organizations (id, name) VALUES (${id}, ${domain}) RETURNING id),
           provider AS (INSERT INTO organization_providers (org_id, issuer, tenant)
                        SELECT id, ${made.issuer}, ${made.tenant} FROM organization)
      INSERT INTO organization_domains (org_id, domain, is_primary, verified_at, token, is_vouched)
      SELECT id, ${domain}, true, now(), ${systemRandom.token()}, ${isVouched} FROM organization`;
    return id;
  }

  /** Returns true if an organization owns a domain now, proven or only asserted by a sign-in. */
  async ownsDomain(tx: EntityManager, orgId: string, domain: string): Promise<boolean> {
    const found = await sql<{ domain: string }>(tx)`
      SELECT domain FROM organization_domains
      WHERE org_id = ${orgId} AND domain = ${domain} AND verified_at IS NOT NULL`;
    return found.length === 1;
  }

  /**
   * Returns true for a domain below one that an organization has proven, if that organization does
   * not accept the provider. Then a sign-in through the provider founds no organization for it. Of
   * several domains above it, each counts.
   */
  async isUnderForeignProof(
    tx: EntityManager,
    domain: string,
    { issuer, tenant }: ProviderTenant,
  ): Promise<boolean> {
    const foreign = await sql<{ domain: string }>(tx)`
      SELECT d.domain FROM proven_domains d
      WHERE d.domain = ANY (${domainsAbove(domain)}::text[])
        AND NOT EXISTS (SELECT FROM organization_providers p
                        WHERE p.org_id = d.org_id AND p.issuer = ${issuer} AND p.tenant = ${tenant})
      LIMIT 1`;
    return foreign.length === 1;
  }

  /**
   * Returns true for a host that is, or lies below, a domain that the organization has proven; of
   * several proven domains the nearest one decides. It stays true until the transaction ends: the
   * loss of the domain waits, and then finds what the transaction made. A transaction that also
   * locks users does so before this call.
   *
   * @param host ASCII, lower case
   */
  async holdProvenHost(tx: EntityManager, orgId: string, host: string): Promise<boolean> {
    const [nearest] = await sql<{ domain: string; org_id: string }>(tx)`
      SELECT domain, org_id FROM proven_domains
      WHERE domain = ANY (${[host, ...domainsAbove(host)]}::text[])
      ORDER BY length(domain) DESC LIMIT 1`;
    if (nearest?.org_id !== orgId) return false;
    const held = await sql<{ domain: string }>(tx)`
      SELECT domain FROM proven_domains WHERE org_id = ${orgId} AND domain = ${nearest.domain} FOR SHARE`;
    return held.length === 1;
  }

  /**
   * Returns true for a domain that an organization proved by DNS at any time. A sign-in does not
   * found an organization for it: only another proof by DNS gives it to an organization again.
   */
  async needsProof(tx: EntityManager, domain: string): Promise<boolean> {
    const found = await sql<{ domain: string }>(tx)`
      SELECT domain FROM dns_proven_domains WHERE domain = ${domain}`;
    return found.length === 1;
  }

  /** Reads the settings of an organization. */
  async settings(tx: EntityManager, orgId: string): Promise<OrganizationSettings | undefined> {
    const [row] = await sql<OrganizationSettings>(tx)`
      SELECT name, membership, device_grant, aws_roles FROM organizations WHERE id = ${orgId}`;
    return row;
  }

  /**
   * Reads the settings of an organization and locks its row until the transaction ends. A
   * transaction that also locks users does so before this call.
   */
  async lockSettings(tx: EntityManager, orgId: string): Promise<OrganizationSettings> {
    const [row] = await sql<OrganizationSettings>(tx)`
      SELECT name, membership, device_grant, aws_roles
      FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
    if (!row) throw new Error('an organization is gone');
    return row;
  }

  /**
   * Changes the settings of an organization. Its row stays locked until the transaction ends: a
   * user who joins waits. Another rule about roles of AWS counts as a change of the roles, so that
   * a token that is being issued is decided again.
   */
  async changeSettings(
    tx: EntityManager,
    orgId: string,
    { name, membership, device_grant: deviceGrant, aws_roles: awsRoles }: OrganizationSettings,
  ): Promise<void> {
    await sql(tx)`
      UPDATE organizations
      SET name = ${name}, membership = ${membership}, device_grant = ${deviceGrant}, aws_roles = ${awsRoles}
      WHERE id = ${orgId}`;
  }

  /**
   * Sets `scim_only` for an organization that never had a SCIM token. The row stays locked until
   * the transaction ends, also without a change: a user who joins waits, and so does another first
   * token.
   *
   * @returns the membership setting before and after
   */
  async beginProvisioning(
    tx: EntityManager,
    orgId: string,
  ): Promise<{ readonly before: Membership; readonly membership: Membership }> {
    const { membership: before } = await this.lockSettings(tx, orgId);
    const [changed] = await sql<{ membership: Membership }>(tx)`
      UPDATE organizations SET membership = 'scim_only'
      WHERE id = ${orgId} AND NOT EXISTS (SELECT FROM scim_tokens WHERE org_id = ${orgId})
      RETURNING membership`;
    return { before, membership: changed?.membership ?? before };
  }

  /**
   * Claims the role of the first admin: true for exactly one caller in the lifetime of the
   * organization.
   */
  async claimFirstAdmin(tx: EntityManager, orgId: string): Promise<boolean> {
    const claimed = await sql<{ id: string }>(tx)`
      UPDATE organizations SET admin_claimed_at = now()
      WHERE id = ${orgId} AND admin_claimed_at IS NULL
      RETURNING id`;
    return claimed.length === 1;
  }

  /**
   * Claims the role of admin in an organization without an acting admin. The row lock serializes
   * two claims, and the second statement sees the commit of the first.
   */
  async claimVacantAdmin(tx: EntityManager, orgId: string): Promise<boolean> {
    await this.#lock(tx, orgId);
    const claimed = await sql<{ id: string }>(tx)`
      UPDATE organizations o SET admin_claimed_at = now()
      WHERE o.id = ${orgId}
        AND NOT EXISTS (SELECT 1 FROM users u
                        WHERE u.org_id = o.id AND is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active))
      RETURNING o.id`;
    return claimed.length === 1;
  }

  /**
   * Returns true when an organization has an acting admin other than one user, whose row the caller
   * has locked. It locks the row of the organization, so that of two last admins who leave at once,
   * the second does not count the first.
   */
  async hasOtherAdmin(tx: EntityManager, orgId: string, userId: string): Promise<boolean> {
    await this.#lock(tx, orgId);
    const others = await sql<{ id: string }>(tx)`
      SELECT id FROM users
      WHERE org_id = ${orgId} AND is_acting_admin(org_id, email, is_org_admin, active) AND id <> ${userId} LIMIT 1`;
    return others.length === 1;
  }

  /** Locks the row of the organization. Rows of users are always locked before it. */
  async #lock(tx: EntityManager, orgId: string): Promise<void> {
    await sql(tx)`SELECT id FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
  }
}

/** Returns the domains above a domain, the nearest first: `b.c` and `c` for `a.b.c`. */
function domainsAbove(domain: string): string[] {
  const labels = domain.split('.');
  return labels.slice(1).map((_, at) => labels.slice(at + 1).join('.'));
}
