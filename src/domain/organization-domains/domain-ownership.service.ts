import { Injectable, Logger } from '@nestjs/common';
import { NIL } from 'uuid';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { RevocationCause, RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { nextDay, stateOf } from './domain-state.js';
import {
  deleteDomain,
  findDomain,
  insertDomain,
  listDomains,
  lockUsersOfDomain,
  markProven,
  markUnverified,
  type DueDomain,
  type OrganizationDomain,
} from './organization-domains.repository.js';

/** The most domains of an organization beside its primary one. */
export const MOST_DOMAINS = 10;

/** An act of an admin on a domain. */
export interface DomainAct {
  readonly admin: Admin;
  /** Normalized by `asciiDomain`. */
  readonly domain: string;
  readonly origin: AuditOrigin;
}

/** The worker that checks the proofs every day has no request. */
const NO_REQUEST: AuditOrigin = {
  requestId: 'daily-domain-check',
  ip: undefined,
  userAgent: undefined,
};

/**
 * Changes the domains that organizations own, each in the caller's transaction, with its audit event. The transaction that takes a
 * domain also ends what was issued under it.
 */
@Injectable()
export class DomainOwnership {
  readonly #security = new Logger('security');

  constructor(
    private readonly organizations: OrganizationsRepository,
    private readonly accessRevocation: AccessRevocation,
    private readonly audit: AuditLog,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  /**
   * Adds a pending domain. It may be pending for any number of organizations.
   *
   * @throws DomainError domain_exists, limit_reached
   */
  async add(tx: EntityManager, act: DomainAct): Promise<OrganizationDomain> {
    const { admin, domain } = act;
    // Concurrent additions wait for the row of the organization, and the limit holds.
    await this.organizations.lockSettings(tx, admin.orgId);
    const others = await listDomains(tx, admin.orgId);
    if (others.some((one) => one.domain === domain)) {
      throw new DomainError('domain_exists', 'Your organization has this domain already.');
    }
    if (others.filter(({ isPrimary }) => !isPrimary).length >= MOST_DOMAINS) {
      throw new DomainError(
        'limit_reached',
        `An organization can have ${MOST_DOMAINS} domains beside its primary one. Remove one first.`,
      );
    }
    const added = await insertDomain(tx, {
      orgId: admin.orgId,
      domain,
      token: this.random.token(),
      addedBy: admin.id,
      now: this.clock.now(),
    });
    if (!added) throw new Error('a domain was added under the lock of its organization');
    await this.#record(tx, 'org_domain_added', act, {});
    return added;
  }

  /**
   * Gives a domain to the organization that has proven it, and ends what users without an organization hold under it. The caller has
   * locked the domain.
   *
   * @param token the token that the DNS showed
   * @throws DomainError domain_taken, not_found
   */
  async prove(tx: EntityManager, act: DomainAct, token: string): Promise<OrganizationDomain> {
    const { admin, domain } = act;
    const before = await findDomain(tx, admin.orgId, domain);
    if (before?.token !== token) throw noDomain();
    const [now, spread] = [this.clock.now(), this.random.bytes(1).readUInt8() / 255];
    const proof = { orgId: admin.orgId, domain, token };
    if (!(await markProven(tx, proof, now, nextDay(now, spread)))) {
      const detail = 'This domain is taken. If your organization owns it, ask the operator.';
      throw new DomainError('domain_taken', detail);
    }
    if (before.verifiedAt === null) {
      const cause = { reason: 'domain claimed', revokedBy: 'organization' };
      const ended = await this.#endAccess(tx, null, domain, cause, admin);
      await this.#record(tx, 'org_domain_verified', act, { from: stateOf(before), ...ended });
    } else if (before.failures > 0) {
      await this.#record(tx, 'org_domain_verified', act, { from: stateOf(before) });
    }
    const after = await findDomain(tx, admin.orgId, domain);
    if (!after) throw new Error('a proven domain is gone');
    return after;
  }

  /**
   * Removes a domain and ends the access of its users, whose accounts stay. The caller has locked the domain.
   *
   * @throws DomainError primary_domain, own_account, not_found
   */
  async remove(tx: EntityManager, act: DomainAct): Promise<RevokedCounts> {
    const { admin, domain } = act;
    const before = await findDomain(tx, admin.orgId, domain);
    if (!before) throw noDomain();
    if (before.isPrimary) {
      const detail = 'This is the primary domain of your organization. It cannot be removed.';
      throw new DomainError('primary_domain', detail);
    }
    const cause = { reason: 'domain removed', revokedBy: admin.id };
    const ended: RevokedCounts =
      before.verifiedAt === null
        ? {}
        : await this.#endAccess(tx, admin.orgId, domain, cause, admin);
    await deleteDomain(tx, admin.orgId, domain);
    await this.#record(tx, 'org_domain_removed', act, { from: stateOf(before), ...ended });
    return ended;
  }

  /**
   * Takes a domain from its organization after its last failed check, and ends the access of its users. The caller has locked the domain.
   *
   * @returns false when the domain was checked or removed meanwhile
   */
  async lose(tx: EntityManager, due: DueDomain, failures: number): Promise<boolean> {
    const { orgId, domain } = due;
    const cause = { reason: 'domain unverified', revokedBy: 'dns' };
    if (!(await markUnverified(tx, due, failures, this.clock.now()))) return false;
    const ended = await this.#endAccess(tx, orgId, domain, cause);
    await this.audit.record(tx, {
      type: 'org_domain_unverified',
      actorId: null,
      subjectId: null,
      orgId,
      origin: NO_REQUEST,
      details: { domain, failures, ...ended },
    });
    if (!(await this.organizations.hasOtherAdmin(tx, orgId, NIL))) {
      this.#security.warn({ orgId, domain }, 'an organization is left without an active admin');
    }
    return true;
  }

  /** Ends the access of the users of a domain. An admin in the domain would lose the own access: refused. */
  async #endAccess(
    tx: EntityManager,
    orgId: string | null,
    domain: string,
    cause: RevocationCause,
    admin?: Admin,
  ): Promise<RevokedCounts> {
    const locked = await lockUsersOfDomain(tx, orgId, domain, admin?.id ?? null);
    const users = locked.filter(({ inDomain }) => inDomain);
    if (users.some(({ id }) => id === admin?.id)) {
      const detail = 'Your own address is in this domain. Ask an admin with another address.';
      throw new DomainError('own_account', detail);
    }
    const counts = await this.accessRevocation.endAll(tx, users, 'domain-lost', cause);
    return { users: users.length, ...counts };
  }

  #record(
    tx: EntityManager,
    type: 'org_domain_added' | 'org_domain_verified' | 'org_domain_removed',
    { admin, domain, origin }: DomainAct,
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.audit.record(tx, {
      type,
      actorId: admin.id,
      subjectId: null,
      orgId: admin.orgId,
      origin,
      details: { domain, ...details },
    });
  }
}

/** Returns the error for a domain that the organization does not have. */
export function noDomain(): DomainError {
  return new DomainError('not_found', 'Your organization has no such domain.');
}
