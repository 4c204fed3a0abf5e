import { Injectable, Logger } from '@nestjs/common';
import { NIL } from 'uuid';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import {
  sumOf,
  type DomainOfOrganization,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { OrganizationsRepository } from '../organizations.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  dropReleased,
  findOwner,
  listOtherOwners,
  lockUsersOfDomain,
  markAssigned,
  takeDomain,
  unbindUsersOfDomain,
  type DomainOwner,
  type UserOfDomain,
} from './domain-owners.repository.js';
import { nextDay, stateOf } from './domain-state.js';
import {
  deleteDomain,
  ensureToken,
  findDomain,
  insertDomain,
  listDomains,
  markProven,
  markUnverified,
  type DueDomain,
  type OrganizationDomain,
} from './organization-domains.repository.js';

/**
 * The most domains that an organization can have in addition to its primary domain and the domains
 * that the operator assigned.
 */
export const MOST_DOMAINS = 10;

/** An act of an admin on a domain of the organization. */
export interface DomainChange {
  readonly admin: { readonly id: string; readonly orgId: string };
  /** The domain in lower-case ASCII, as `asciiDomain` returns it. */
  readonly domain: string;
  readonly origin: AuditOrigin;
}

/** The operator of the service, in the form in which an audit event names the operator. */
export interface DomainOperator {
  readonly origin: AuditOrigin;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * The origin of audit events that name no request. The daily check of domains caused the event, or
 * another organization got the domain. The request of another organization must stay hidden.
 */
const NO_REQUEST: AuditOrigin = {
  requestId: 'daily-domain-check',
  ip: undefined,
  userAgent: undefined,
};

/**
 * Changes the domains that organizations own, each change in the caller's transaction and with its
 * audit event. A transaction that takes a domain away also ends what was issued because of the
 * domain.
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
   * Adds a domain as pending, which means that it is not proven yet. Any number of organizations
   * can have the same pending domain.
   *
   * @throws DomainError domain_exists, limit_reached
   */
  async add(tx: EntityManager, act: DomainChange): Promise<OrganizationDomain> {
    const { admin, domain } = act;
    // Other requests that add a domain wait for this lock, so that together they cannot exceed the
    // limit.
    await this.organizations.lockSettings(tx, admin.orgId);
    const others = await listDomains(tx, admin.orgId);
    if (others.some((one) => one.domain === domain)) {
      throw new DomainError('domain_exists', 'Your organization has this domain already.');
    }
    if (
      others.filter(({ isPrimary, proof }) => !isPrimary && proof !== 'operator').length >=
      MOST_DOMAINS
    ) {
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
   * Returns the token that proves a domain by its DNS record, and makes one if there is none.
   * Returns undefined if the organization does not have the domain.
   */
  ensureToken(tx: EntityManager, own: DomainOfOrganization): Promise<string | undefined> {
    return ensureToken(tx, own, this.random.token());
  }

  /**
   * Gives a domain to the organization that has proven it. It ends the access of users without an
   * organization whose e-mail address is in the domain. If another organization owns the domain
   * without a proof, because one of its users signed in with such an address, that organization
   * loses the domain. The caller has locked the domain.
   *
   * @param token the token that the DNS record of the domain contains
   * @throws DomainError domain_taken, not_found
   */
  async prove(tx: EntityManager, act: DomainChange, token: string): Promise<OrganizationDomain> {
    const { admin, domain } = act;
    const own = { orgId: admin.orgId, domain };
    const before = await findDomain(tx, own.orgId, domain);
    if (before?.token !== token) throw noDomain();
    const claimed = before.proof === null ? await this.#claim(tx, own, admin.id) : undefined;
    const [now, spread] = [this.clock.now(), this.random.bytes(1).readUInt8() / 255];
    if (!(await markProven(tx, { ...own, token }, now, nextDay(now, spread)))) throw domainTaken();
    if (claimed) {
      // The event of the new owner does not contain the counts of the organization that loses the
      // domain.
      const { ended } = await claimed();
      await this.#record(tx, 'org_domain_verified', act, { from: stateOf(before), ...ended });
    } else if (before.failures > 0) {
      await this.#record(tx, 'org_domain_verified', act, { from: stateOf(before) });
    }
    return this.#read(tx, own);
  }

  /**
   * Gives a domain to an organization because the operator decided so. It has the same effects as
   * {@link prove}, but the domain needs no DNS record and has no daily checks. The caller has
   * locked the domain.
   *
   * @returns the numbers of sessions and other items that ended; undefined if the domain is already
   *   assigned to the organization
   * @throws DomainError domain_taken if another organization has proven the domain
   */
  async assign(
    tx: EntityManager,
    own: DomainOfOrganization,
    operator: DomainOperator,
  ): Promise<RevokedCounts | undefined> {
    const before = await findDomain(tx, own.orgId, own.domain);
    if (before?.proof === 'operator') return undefined;
    const claimed = await this.#claim(tx, own, null);
    if (!(await markAssigned(tx, own, this.clock.now()))) throw domainTaken();
    const { ended, lost } = await claimed();
    const from = before ? stateOf(before) : 'none';
    await this.#recordByOperator(tx, 'domain_assigned', own, operator, { from, ...ended });
    return sumOf([ended, lost]);
  }

  /**
   * Takes a domain from its owner because the operator decided so, and ends the access that needed
   * the domain. The caller has locked the domain.
   *
   * @throws DomainError not_found if no organization owns the domain
   */
  async release(
    tx: EntityManager,
    domain: string,
    operator: DomainOperator,
  ): Promise<{ readonly owner: DomainOwner; readonly ended: RevokedCounts }> {
    const owner = await findOwner(tx, domain);
    if (!owner) throw new DomainError('not_found', 'No organization owns this domain.');
    const own = { orgId: owner.orgId, domain };
    const cause = { reason: 'domain released', revokedBy: 'operator' };
    const users = await lockUsersOfDomain(
      tx,
      domain,
      { orgIds: [own.orgId], outsiders: false },
      null,
    );
    await takeDomain(tx, own, this.clock.now(), 'any owner');
    const ended = await this.#endStanding(tx, own, users, cause);
    await this.#unbind(tx, domain, users, operator);
    await dropReleased(tx, own);
    const { isPrimary, isProven } = owner;
    const facts = { primary: isPrimary, proven: isProven, ...ended };
    await this.#recordByOperator(tx, 'domain_released', own, operator, facts);
    await this.#warnIfLeft(tx, own);
    return { owner, ended };
  }

  /**
   * Removes a domain from its organization and ends the access of the users whose e-mail address is
   * in the domain. Their accounts stay. The caller has locked the domain.
   *
   * @throws DomainError primary_domain, own_account, not_found
   */
  async remove(tx: EntityManager, act: DomainChange): Promise<RevokedCounts> {
    const { admin, domain } = act;
    const own = { orgId: admin.orgId, domain };
    const before = await findDomain(tx, own.orgId, domain);
    if (!before) throw noDomain();
    if (before.isPrimary) {
      const detail = 'This is the primary domain of your organization. It cannot be removed.';
      throw new DomainError('primary_domain', detail);
    }
    if (before.verifiedAt === null) {
      await deleteDomain(tx, own.orgId, domain);
      await this.#record(tx, 'org_domain_removed', act, { from: stateOf(before) });
      return {};
    }
    const cause = { reason: 'domain removed', revokedBy: admin.id };
    const users = await lockUsersOfDomain(
      tx,
      domain,
      { orgIds: [own.orgId], outsiders: false },
      admin.id,
    );
    if (users.some(({ id, inDomain }) => inDomain && id === admin.id)) {
      const detail = 'Your own address is in this domain. Ask an admin with another address.';
      throw new DomainError('own_account', detail);
    }
    await deleteDomain(tx, own.orgId, domain);
    const ended = await this.#endStanding(tx, own, users, cause);
    await this.#record(tx, 'org_domain_removed', act, { from: stateOf(before), ...ended });
    return ended;
  }

  /**
   * Ends the proof of a domain, because too many checks in a row failed. The organization loses the
   * domain, and the users with an e-mail address in it lose their access. A primary domain stays
   * with its organization without a proof. Its users keep their access, but another organization
   * can now prove the domain. The caller has locked the domain.
   *
   * @returns false if the domain was checked or removed meanwhile
   */
  async lose(tx: EntityManager, due: DueDomain, failures: number): Promise<boolean> {
    const { orgId, domain } = due;
    const own = { orgId, domain };
    const cause = { reason: 'domain unverified', revokedBy: 'dns' };
    const users = await lockUsersOfDomain(tx, domain, { orgIds: [orgId], outsiders: false }, null);
    if (!(await markUnverified(tx, due, failures, this.clock.now()))) return false;
    const { verifiedAt, proof } = await this.#read(tx, own);
    const ending = verifiedAt === null ? users : [];
    const ended = proof === null ? await this.#endStanding(tx, own, ending, cause) : {};
    const kept = verifiedAt === null ? {} : { primary: true };
    await this.#recordLoss(tx, own, { failures, ...kept, ...ended });
    if (verifiedAt === null) await this.#warnIfLeft(tx, own);
    return true;
  }

  /**
   * Prepares the transaction for a new proof of a domain. It locks the users whose access ends, and
   * takes the domain from an organization that owns it without a proof.
   *
   * @returns a function that the caller runs after the proof is recorded. It ends the access that
   *   is not allowed any more, and counts what ended for the losing organization and for all others
   * @throws DomainError domain_taken if another organization has proven the domain
   */
  async #claim(
    tx: EntityManager,
    own: DomainOfOrganization,
    adminId: string | null,
  ): Promise<() => Promise<{ readonly ended: RevokedCounts; readonly lost: RevokedCounts }>> {
    const { domain } = own;
    const found = await findOwner(tx, domain);
    const owner = found && found.orgId !== own.orgId ? found : undefined;
    if (owner?.isProven) throw domainTaken();
    const of = { orgIds: await listOtherOwners(tx, own), outsiders: true };
    const users = await lockUsersOfDomain(tx, domain, of, adminId);
    const loser = owner && { orgId: owner.orgId, domain };
    if (loser && !(await takeDomain(tx, loser, this.clock.now(), 'asserting'))) throw domainTaken();
    return async () => {
      const cause = { reason: 'domain claimed', revokedBy: 'organization' };
      const outsiders = users.filter(({ orgId, inDomain }) => orgId === null && inDomain);
      const counts = await this.accessRevocation.end(tx, outsiders, 'domain-lost', cause);
      const doubles = await this.accessRevocation.claimDomain(tx, own, cause);
      const lost = loser ? await this.#endOfLoser(tx, loser, users) : {};
      const strangers = users.filter(({ orgId }) => orgId !== own.orgId);
      await this.#unbind(tx, domain, strangers);
      return { ended: { users: outsiders.length, ...sumOf([counts, doubles]) }, lost };
    };
  }

  /**
   * Ends the access that needed a domain in the organization that lost it, because another
   * organization has proven it. The audit event does not name the organization that has proven it,
   * because that organization must stay unknown to the former owner.
   */
  async #endOfLoser(
    tx: EntityManager,
    loser: DomainOfOrganization,
    users: readonly UserOfDomain[],
  ): Promise<RevokedCounts> {
    const cause = { reason: 'domain proven by another organization', revokedBy: 'organization' };
    const ended = await this.#endStanding(tx, loser, users, cause);
    await this.#recordLoss(tx, loser, { taken_over: true, ...ended });
    this.#security.warn(
      { orgId: loser.orgId, domain: loser.domain },
      'an organization has lost a domain that it had not proven: another one has proven it',
    );
    await this.#warnIfLeft(tx, loser);
    return ended;
  }

  /**
   * Removes the bindings to identities of members whose e-mail address is in a domain. At their
   * next sign-in they can then join the organization that owns the domain. The caller gives no
   * users of that organization.
   *
   * @param operator the operator who takes the domain away, whom the audit events name
   */
  #unbind(
    tx: EntityManager,
    domain: string,
    users: readonly UserOfDomain[],
    operator?: DomainOperator,
  ): Promise<void> {
    const members = users.filter(({ orgId, inDomain }) => inDomain && orgId !== null);
    const { origin, details } = operator ?? { origin: NO_REQUEST, details: {} };
    return unbindUsersOfDomain(tx, members, { domain, ...details }, origin);
  }

  /**
   * Ends the access of the users of an organization with an e-mail address in a domain. It also
   * ends everything else that needed the domain. The rows of the users are locked.
   */
  async #endStanding(
    tx: EntityManager,
    own: DomainOfOrganization,
    locked: readonly UserOfDomain[],
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const users = locked.filter(({ orgId, inDomain }) => inDomain && orgId === own.orgId);
    const counts = await this.accessRevocation.end(tx, users, 'domain-lost', cause);
    const standing = await this.accessRevocation.endOfDomain(tx, own, cause);
    return { users: users.length, ...sumOf([counts, standing]) };
  }

  async #warnIfLeft(tx: EntityManager, { orgId, domain }: DomainOfOrganization): Promise<void> {
    if (await this.organizations.hasOtherAdmin(tx, orgId, NIL)) return;
    this.#security.warn({ orgId, domain }, 'an organization is left without an active admin');
  }

  async #read(
    tx: EntityManager,
    { orgId, domain }: DomainOfOrganization,
  ): Promise<OrganizationDomain> {
    const found = await findDomain(tx, orgId, domain);
    if (!found) throw new Error('the domain of a locked row is gone');
    return found;
  }

  #record(
    tx: EntityManager,
    type: 'org_domain_added' | 'org_domain_verified' | 'org_domain_removed',
    { admin, domain, origin }: DomainChange,
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

  /**
   * Records in the audit log that an organization lost the proof of a domain. The event names no
   * actor, because the daily check found the loss, or another organization caused it, which must
   * stay unknown.
   */
  #recordLoss(
    tx: EntityManager,
    { orgId, domain }: DomainOfOrganization,
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.audit.record(tx, {
      type: 'org_domain_unverified',
      actorId: null,
      subjectId: null,
      orgId,
      origin: NO_REQUEST,
      details: { domain, ...details },
    });
  }

  #recordByOperator(
    tx: EntityManager,
    type: 'domain_assigned' | 'domain_released',
    { orgId, domain }: DomainOfOrganization,
    { origin, details }: DomainOperator,
    facts: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const event = { actorId: null, subjectId: null, orgId, origin };
    return this.audit.record(tx, { ...event, type, details: { domain, ...facts, ...details } });
  }
}

function domainTaken(): DomainError {
  const detail = 'This domain is taken. If your organization owns it, ask the operator.';
  return new DomainError('domain_taken', detail);
}

/** Returns the error for a domain that the organization does not have. */
export function noDomain(): DomainError {
  return new DomainError('not_found', 'Your organization has no such domain.');
}
