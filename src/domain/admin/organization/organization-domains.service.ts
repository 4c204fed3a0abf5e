import { Injectable } from '@nestjs/common';
import { previewEnd, type EndPreview } from './end-preview.repository.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { DnsFault, TxtRecords } from '#platform/outbound/txt-records.js';
import { asciiDomain, parseDomain } from '#domain/organizations/domains/domain-name.js';
import {
  DomainOwnership,
  noDomain,
  type DomainChange,
} from '#domain/organizations/domains/domain-ownership.service.js';
import {
  describeMismatch,
  isProof,
  proofRecord,
} from '#domain/organizations/domains/domain-record.js';
import {
  findDomain,
  listDomains,
  listUsersOfDomain,
  type OrganizationDomain,
} from '#domain/organizations/domains/organization-domains.repository.js';

/** The seconds after which a client may try again if the DNS gave no usable response. */
const RETRY_AFTER = 30;

/** An act of an admin on a domain of the organization. */
export interface DomainAct extends DomainChange {
  readonly admin: Admin;
}

/** A domain, and the counts of the access that its removal would end. */
export interface DomainPreview {
  readonly domain: OrganizationDomain;
  /** True for the domain of the admin's own e-mail address, which the admin cannot remove. */
  readonly isOwn: boolean;
  readonly ends: EndPreview;
}

/**
 * The acts of admins on the domains of their organization. A proof or a removal first locks the
 * name of the domain, then the users, including the acting admin. An enrollment also locks this
 * name before it creates a user. So either the enrollment waits for the change, or the change sees
 * the new user.
 */
@Injectable()
export class OrganizationDomains {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly organizations: OrganizationsRepository,
    private readonly ownership: DomainOwnership,
    private readonly txtRecords: TxtRecords,
  ) {}

  /** Lists the domains of the organization: the primary one first, then by age. */
  list({ orgId }: Admin): Promise<OrganizationDomain[]> {
    return this.work.bounded(orgId, (tx) => listDomains(tx, orgId));
  }

  /**
   * Returns a domain, and the counts of the access that its removal would end now. @throws
   * DomainError not_found
   */
  preview({ id, orgId }: Admin, name: string): Promise<DomainPreview> {
    return this.work.costly(orgId, async (tx) => {
      const domain = await findDomain(tx, orgId, asciiDomain(name) ?? '');
      if (!domain) throw noDomain();
      const isHeld = domain.verifiedAt !== null && !domain.isPrimary;
      const users = isHeld ? await listUsersOfDomain(tx, orgId, domain.domain) : [];
      return { domain, isOwn: users.includes(id), ends: await previewEnd(tx, users) };
    });
  }

  /**
   * Adds a domain, which is pending until its DNS record is found.
   *
   * @throws DomainError invalid_request, domain_exists, limit_reached, admin_required
   */
  add(act: DomainAct): Promise<OrganizationDomain> {
    const domain = parseDomain(act.domain);
    return this.work.transact(act.admin.orgId, async (tx) => {
      await this.members.holdAdmin(tx, act.admin);
      return this.ownership.add(tx, { ...act, domain });
    });
  }

  /**
   * Looks for the DNS record of a domain now, and gives the domain to the organization if the
   * record is there. The look-up is outside of any transaction, because it may take long. Without
   * the record nothing changes, because only the daily check counts failed look-ups.
   *
   * @throws DomainError not_found, domain_not_proven, domain_taken, dns_unavailable, admin_required
   */
  async verify(act: DomainAct): Promise<OrganizationDomain> {
    const { orgId } = act.admin;
    const domain = asciiDomain(act.domain) ?? '';
    const known = await this.work.bounded(orgId, (tx) => findDomain(tx, orgId, domain));
    if (!known) throw noDomain();
    // A domain that the operator assigned needs no DNS record.
    if (known.proof === 'operator') return known;
    const token = known.token ?? (await this.#tokenOf(act, domain));
    const record = proofRecord(domain, token);
    const texts = await this.#lookUp(record.name);
    if (!isProof(record, texts)) {
      throw new DomainError('domain_not_proven', describeMismatch(record, texts));
    }
    return this.#change(act, domain, (tx) => this.ownership.prove(tx, { ...act, domain }, token));
  }

  /**
   * Removes a domain and ends the access of the users whose e-mail address is in the domain.
   *
   * @returns the counts of what ended
   * @throws DomainError not_found, primary_domain, own_account, admin_required
   */
  remove(act: DomainAct): Promise<RevokedCounts> {
    const domain = asciiDomain(act.domain) ?? '';
    return this.#change(act, domain, (tx) => this.ownership.remove(tx, { ...act, domain }));
  }

  /**
   * Returns the token that the DNS record of a domain must contain. If the domain has none, the
   * token is made now. A domain has none if the organization first got it from the operator, or if
   * an earlier version of the service made it as a primary domain.
   */
  async #tokenOf({ admin }: DomainAct, domain: string): Promise<string> {
    const own = { orgId: admin.orgId, domain };
    const token = await this.work.transact(admin.orgId, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      return this.ownership.ensureToken(tx, own);
    });
    if (token === undefined) throw noDomain();
    return token;
  }

  #change<Done>(
    { admin }: DomainAct,
    domain: string,
    change: (tx: EntityManager) => Promise<Done>,
  ): Promise<Done> {
    return this.work.transact(admin.orgId, async (tx) => {
      await this.organizations.lockDomain(tx, domain);
      const done = await change(tx);
      await this.members.holdAdmin(tx, admin);
      return done;
    });
  }

  async #lookUp(name: string): Promise<string[]> {
    try {
      return await this.txtRecords.lookUp(name);
    } catch (error) {
      if (!(error instanceof DnsFault)) throw error;
      const detail = `The DNS gave no usable response for ${name}. Nothing was changed. Try again later.`;
      throw new DomainError('dns_unavailable', detail, { cause: error, retryAfter: RETRY_AFTER });
    }
  }
}
