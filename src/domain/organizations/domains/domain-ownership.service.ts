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

/** The most domains of an organization beside its primary one. */
export const MOST_DOMAINS = 10;

/** A change of an admin to a domain. */
export interface DomainChange {
  readonly admin: { readonly id: string; readonly orgId: string };
  /** The domain, in the form that `asciiDomain` returns. */
  readonly domain: string;
  readonly origin: AuditOrigin;
}

/** The operator of the service, in the form that the audit event of an act on a domain records. */
export interface DomainOperator {
  readonly origin: AuditOrigin;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * The origin of events that have no request to show. The daily worker has none, and the request of
 * another organization stays hidden.
 */
const NO_REQUEST: AuditOrigin = {
  requestId: 'daily-domain-check',
  ip: undefined,
  userAgent: undefined,
};

/**
 * Changes the domains that organizations own, each in the caller's transaction, with its audit
 * event. The transaction that takes a domain also ends what was issued under it.
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
  async add(tx: EntityManager, act: DomainChange): Promise<OrganizationDomain> {
    const { admin, domain } = act;
    // Concurrent additions wait for the row of the organization, so that the limit holds.
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
   * Returns the token of a domain, and makes one if there is none; undefined without the domain.
   */
  ensureToken(tx: EntityManager, own: DomainOfOrganization): Promise<string | undefined> {
    return ensureToken(tx, own, this.random.token());
  }

  /**
   * Gives a domain to the organization that has proven it, and ends what users without an
   * organization hold under it. If a sign-in only asserted the domain for another organization,
   * that organization loses it. The caller has locked the domain.
   *
   * @param token the token that the DNS showed
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
      const { ended } = await claimed(); // the counts of the losing organization are not returned
      await this.#record(tx, 'org_domain_verified', act, { from: stateOf(before), ...ended });
    } else if (before.failures > 0) {
      await this.#record(tx, 'org_domain_verified', act, { from: stateOf(before) });
    }
    return this.#read(tx, own);
  }

  /**
   * Gives a domain to an organization by the decision of the operator, as {@link prove} does, but
   * without checks. The caller has locked the domain.
   *
   * @returns the counts of what ended; undefined when the domain is already assigned to the
   *   organization
   * @throws DomainError domain_taken when another organization has proven the domain
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
   * Takes a domain from its owner by the decision of the operator, and ends the items that needed
   * the domain. The caller has locked the domain.
   *
   * @throws DomainError not_found when no organization owns the domain
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
    await this.#unbind(tx, domain, users);
    await dropReleased(tx, own);
    const { isPrimary, isProven } = owner;
    const facts = { primary: isPrimary, proven: isProven, ...ended };
    await this.#recordByOperator(tx, 'domain_released', own, operator, facts);
    await this.#warnIfLeft(tx, own);
    return { owner, ended };
  }

  /**
   * Removes a domain and ends the access of its users, whose accounts stay. The caller has locked
   * the domain.
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
   * Takes the proof of a domain from its organization after its last failed check, and ends the
   * access of its users. A primary domain loses only the proof: it stays with its organization, as
   * asserted by a sign-in. The caller has locked the domain.
   *
   * @returns false when the domain was checked or removed meanwhile
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
   * Prepares the transaction for a new proof of a domain. It locks the users whose access ends. If
   * a sign-in only asserted the domain for another organization, it takes the domain from that
   * organization.
   *
   * @returns a function that the caller runs after the proof is noted: it ends what is not allowed
   * any more, and counts what ended for the losing organization and for all others
   * @throws DomainError domain_taken when another organization has proven the domain
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
   * Ends the items that needed a domain in the organization that lost it, because another one has
   * proven it. The audit event does not name the other organization.
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
   * Unbinds the users of a domain from the organizations that do not own it, so that they can join
   * the owner.
   */
  #unbind(tx: EntityManager, domain: string, users: readonly UserOfDomain[]): Promise<void> {
    const members = users.filter(({ orgId, inDomain }) => inDomain && orgId !== null);
    return unbindUsersOfDomain(tx, members, { domain }, NO_REQUEST);
  }

  /**
   * Ends the access of the users of a domain, whose rows are locked, and every other item that
   * needed the domain.
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
   * Records the loss of a proof in the organization that had the domain. The event has no actor.
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
