import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/clock/random.js';
import { sql } from '#platform/database/statements/sql.js';
import type { Membership } from './membership.js';

/** An organization as a sign-in needs to know it. */
export interface Organization {
  readonly id: string;
  readonly membership: Membership;
  /** Whether it accepts sign-ins through the provider and tenant that was asked about. */
  readonly acceptsProvider: boolean;
}

/** What the admins of an organization can change of it. */
export interface OrganizationSettings {
  readonly name: string;
  readonly membership: Membership;
}

/** Who vouches for people: an issuer, and the tenant where the issuer serves many. */
export interface ProviderTenant {
  readonly issuer: string;
  readonly tenant: string;
}

/** Organizations, the domains they own and the providers they accept. */
@Injectable()
export class OrganizationsRepository {
  /** The organization that owns a domain, seen from one provider and tenant. */
  async findByDomain(
    tx: EntityManager,
    domain: string,
    { issuer, tenant }: ProviderTenant,
  ): Promise<Organization | undefined> {
    const [row] = await sql<{ id: string; membership: Membership; accepts: boolean }>(tx)`
      SELECT o.id, o.membership,
             EXISTS (SELECT 1 FROM organization_providers p
                     WHERE p.org_id = o.id AND p.issuer = ${issuer} AND p.tenant = ${tenant}) AS accepts
      FROM organization_domains d JOIN organizations o ON o.id = d.org_id
      WHERE d.domain = ${domain} AND d.verified_at IS NOT NULL`;
    return row && { id: row.id, membership: row.membership, acceptsProvider: row.accepts };
  }

  /**
   * Makes the people of one domain wait for each other until the transaction ends, so that two who come first at once
   * see one organization. A lock and not a unique index alone: the loser must join, not fail.
   */
  async lockDomain(tx: EntityManager, domain: string): Promise<void> {
    await sql(tx)`SELECT pg_advisory_xact_lock(hashtextextended('organization ' || ${domain}, 0))`;
  }

  /** Makes the organization of a domain; it belongs to the provider and tenant its first person came through. */
  async create(tx: EntityManager, domain: string, made: ProviderTenant): Promise<string> {
    const id = newUuid();
    await sql(tx)`
      WITH organization AS (INSERT INTO organizations (id, name) VALUES (${id}, ${domain}) RETURNING id),
           provider AS (INSERT INTO organization_providers (org_id, issuer, tenant)
                        SELECT id, ${made.issuer}, ${made.tenant} FROM organization)
      INSERT INTO organization_domains (org_id, domain, is_primary, verified_at)
      SELECT id, ${domain}, true, now() FROM organization`;
    return id;
  }

  /** Whether the organization owns the domain: its primary one, or one proven by DNS. */
  async ownsDomain(tx: EntityManager, orgId: string, domain: string): Promise<boolean> {
    const found = await sql<{ domain: string }>(tx)`
      SELECT domain FROM organization_domains
      WHERE org_id = ${orgId} AND domain = ${domain} AND verified_at IS NOT NULL`;
    return found.length === 1;
  }

  /** The settings of an organization. */
  async settings(tx: EntityManager, orgId: string): Promise<OrganizationSettings | undefined> {
    const [row] = await sql<OrganizationSettings>(tx)`
      SELECT name, membership FROM organizations WHERE id = ${orgId}`;
    return row;
  }

  /** The settings of an organization, which stay so until the transaction ends: its row is locked, after those of people. */
  async lockSettings(tx: EntityManager, orgId: string): Promise<OrganizationSettings> {
    const [row] = await sql<OrganizationSettings>(tx)`
      SELECT name, membership FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
    if (!row) throw new Error('an organization is gone');
    return row;
  }

  /** Changes the settings of an organization. Its row stays locked until the transaction ends: a person who joins waits. */
  async changeSettings(
    tx: EntityManager,
    orgId: string,
    { name, membership }: OrganizationSettings,
  ): Promise<void> {
    await sql(
      tx,
    )`UPDATE organizations SET name = ${name}, membership = ${membership} WHERE id = ${orgId}`;
  }

  /**
   * Sets `scim_only` where the organization never had a SCIM token. Its row stays locked until the transaction ends, changed or
   * not: a person who joins waits, and so does another first token.
   *
   * @returns how people became members until now, and how from now on
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
   * Claims the place of the first admin for its first person: true for exactly one caller in the organization's life.
   */
  async claimFirstAdmin(tx: EntityManager, orgId: string): Promise<boolean> {
    const claimed = await sql<{ id: string }>(tx)`
      UPDATE organizations SET admin_claimed_at = now()
      WHERE id = ${orgId} AND admin_claimed_at IS NULL
      RETURNING id`;
    return claimed.length === 1;
  }

  /**
   * Claims the place of an admin in an organization left without an acting one. The row lock makes two claimants take
   * turns, and the second statement sees what the first committed.
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
   * Whether an organization has an acting admin beside one person, whose row the caller has locked. Its own is locked, too, so
   * that of the two last ones who go at once the second does not see the first.
   */
  async hasOtherAdmin(tx: EntityManager, orgId: string, userId: string): Promise<boolean> {
    await this.#lock(tx, orgId);
    const others = await sql<{ id: string }>(tx)`
      SELECT id FROM users
      WHERE org_id = ${orgId} AND is_acting_admin(org_id, email, is_org_admin, active) AND id <> ${userId} LIMIT 1`;
    return others.length === 1;
  }

  /** After people's rows, never before: whoever locks people and their organization does so in this order. */
  async #lock(tx: EntityManager, orgId: string): Promise<void> {
    await sql(tx)`SELECT id FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
  }
}
