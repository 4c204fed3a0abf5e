import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { newUuid, systemRandom } from '#platform/clock/random.js';
import { sql } from '#platform/database/statements/sql.js';
import type { Membership } from './membership.js';

/** The facts of an organization that a sign-in needs. */
export interface Organization {
  readonly id: string;
  readonly membership: Membership;
  /** True if the organization accepts sign-ins through the given provider and tenant. */
  readonly acceptsProvider: boolean;
}

/** The settings of an organization that its admins can change. */
export interface OrganizationSettings {
  readonly name: string;
  readonly membership: Membership;
  /** True if people of the organization may approve device codes (RFC 8628). */
  readonly device_grant: boolean;
  /**
   * `listed`: AWS tokens are given only for roles that are targets of the organization. `any`: for
   * every role.
   */
  readonly aws_roles: 'any' | 'listed';
}

/** An identity provider: its issuer, and the tenant if the issuer serves many tenants. */
export interface ProviderTenant {
  readonly issuer: string;
  readonly tenant: string;
}

/** Stores organizations, the domains that they own and the identity providers that they accept. */
@Injectable()
export class OrganizationsRepository {
  /**
   * Finds the organization that owns a domain, and checks if it accepts a provider and tenant. If
   * it does, the row of the provider is locked as in {@link OrganizationsRepository.holdProvider}.
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
   * Returns true if an organization accepts a provider and tenant, and locks that fact until the
   * transaction ends. A transaction that withdraws the provider waits for the lock, and then sees
   * everything that this transaction has made. Both transactions take this lock before the lock on
   * the row of a user.
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
   * Locks a domain name until the transaction ends, even if it has no row. So if the first two
   * users of a domain sign in at once, one founds the organization and the other joins it. With a
   * unique index alone, the second sign-in would fail.
   */
  async lockDomain(tx: EntityManager, domain: string): Promise<void> {
    await sql(tx)`SELECT pg_advisory_xact_lock(hashtextextended('organization ' || ${domain}, 0))`;
  }

  /**
   * Locks the directory of an organization until the transaction ends. So acts that add, separate
   * or readmit a member, or that change the e-mail address or `active` of a member, happen one
   * after another. A transaction takes this lock after the locks on a domain and a provider, and
   * before those on rows of users. It then reads the facts by further statements, which see what
   * earlier acts did.
   */
  async lockDirectory(tx: EntityManager, orgId: string): Promise<void> {
    await sql(tx)`SELECT org_id FROM directory_locks WHERE org_id = ${orgId} FOR UPDATE`;
  }

  /**
   * Creates the organization of a domain. It accepts the provider and tenant of its first user.
   *
   * @param isVouched true if the configuration of the provider names the domain. The domain then
   *   counts as proven
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

  /** Returns true if an organization owns a domain now, with or without a proof. */
  async ownsDomain(tx: EntityManager, orgId: string, domain: string): Promise<boolean> {
    const found = await sql<{ domain: string }>(tx)`
      SELECT domain FROM organization_domains
      WHERE org_id = ${orgId} AND domain = ${domain} AND verified_at IS NOT NULL`;
    return found.length === 1;
  }

  /**
   * Returns true for a domain below one that another organization has proven, if that organization
   * does not accept the provider. In this case, a sign-in through the provider founds no
   * organization for the domain. If several domains above the given domain are proven, each of them
   * is checked.
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
   * Returns true for a host that is, or lies below, a domain that the organization has proven. If
   * several domains above the host are proven, the nearest one decides. The domain is locked, so
   * that the result stays true until the transaction ends. A transaction that takes the domain away
   * waits, and then finds what this transaction made. A transaction that also locks users must do
   * so before this call.
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
   * Returns true for a domain that an organization proved by DNS at any time, or removed after the
   * operator had assigned it. A sign-in does not found an organization for such a domain. Only
   * another proof by DNS, or the operator, gives it to an organization.
   */
  async needsProof(tx: EntityManager, domain: string): Promise<boolean> {
    const found = await sql<{ domain: string }>(tx)`
      SELECT domain FROM dns_proven_domains WHERE domain = ${domain}`;
    return found.length === 1;
  }

  /** Reads the settings of an organization; undefined if it does not exist. */
  async settings(tx: EntityManager, orgId: string): Promise<OrganizationSettings | undefined> {
    const [row] = await sql<OrganizationSettings>(tx)`
      SELECT name, membership, device_grant, aws_roles FROM organizations WHERE id = ${orgId}`;
    return row;
  }

  /**
   * Reads the settings of an organization and locks its row until the transaction ends, so that no
   * other transaction changes them. A transaction that also locks users must do so before this
   * call, because all transactions lock users before organizations.
   */
  async lockSettings(tx: EntityManager, orgId: string): Promise<OrganizationSettings> {
    const [row] = await sql<OrganizationSettings>(tx)`
      SELECT name, membership, device_grant, aws_roles
      FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
    if (!row) throw new Error('an organization is gone');
    return row;
  }

  /**
   * Changes the settings of an organization. Its row stays locked until the transaction ends, so
   * that a transaction that adds a user waits for the new rule. If the rule about AWS roles
   * changes, a database trigger counts this as a change of the access rules. So a statement that is
   * issuing a token at this moment decides again.
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
   * Sets the membership `scim_only` for an organization that never had a SCIM token. The row stays
   * locked until the transaction ends, even if nothing changes. So a transaction that adds a user
   * waits, and so does another request that makes the first token.
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
   * Claims the role of the first admin of an organization. Of all calls for one organization,
   * exactly one ever returns true.
   */
  async claimFirstAdmin(tx: EntityManager, orgId: string): Promise<boolean> {
    const claimed = await sql<{ id: string }>(tx)`
      UPDATE organizations SET admin_claimed_at = now()
      WHERE id = ${orgId} AND admin_claimed_at IS NULL
      RETURNING id`;
    return claimed.length === 1;
  }

  /**
   * Claims the role of admin in an organization that has no active admin. The row of the
   * organization is locked, so that if two users claim the role at once, the second sees that the
   * first has it.
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
   * Returns true if an organization has an active admin other than the given user, whose row the
   * caller has locked. It locks the row of the organization. So if the last two admins leave at
   * once, the second transaction does not count the first admin.
   */
  async hasOtherAdmin(tx: EntityManager, orgId: string, userId: string): Promise<boolean> {
    await this.#lock(tx, orgId);
    const others = await sql<{ id: string }>(tx)`
      SELECT id FROM users
      WHERE org_id = ${orgId} AND is_acting_admin(org_id, email, is_org_admin, active) AND id <> ${userId} LIMIT 1`;
    return others.length === 1;
  }

  /**
   * Locks the row of the organization. Every transaction locks the rows of users before it, so that
   * two transactions cannot deadlock.
   */
  async #lock(tx: EntityManager, orgId: string): Promise<void> {
    await sql(tx)`SELECT id FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
  }
}

/** Returns the domains above a domain, the nearest first: `b.c` and `c` for `a.b.c`. */
function domainsAbove(domain: string): string[] {
  const labels = domain.split('.');
  return labels.slice(1).map((_, at) => labels.slice(at + 1).join('.'));
}
