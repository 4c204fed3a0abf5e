import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { TombstonesRepository } from '#domain/organizations/tombstones.repository.js';
import type { BootstrapSession, PendingSession } from '#domain/sessions/session.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ClaimAdmin } from './claim-admin.service.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import { PROVISIONED, REMOVED } from './resolve-person.service.js';
import { UsersRepository } from './users.repository.js';

/** The person whose key is being enrolled, their row locked. */
export interface EnrollingPerson {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string;
}

/** Makes people: nobody is anybody here before a genuine key is theirs. */
@Injectable()
export class MakePerson {
  constructor(
    private readonly sessions: Sessions,
    private readonly users: UsersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly claimAdmin: ClaimAdmin,
    private readonly revocation: AccessRevocation,
    private readonly tombstones: TombstonesRepository,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Ends the bootstrap session and returns its person, locked: the user it belongs to, or the one made of its pending
   * identity. Of two enrollments in one session the second finds it gone. The user's row is locked before the session
   * ends, the order in which de-provisioning takes them.
   *
   * @param newUserId the id a person made here gets: the key already knows it as its user handle
   * @throws DomainError unauthenticated when the session has ended, account_inactive, enrollment_refused
   */
  async lockOrMake(
    tx: EntityManager,
    session: BootstrapSession | PendingSession,
    newUserId: string,
    origin: AuditOrigin,
  ): Promise<EnrollingPerson> {
    let person: EnrollingPerson;
    if (session.user) {
      person = await this.#lock(tx, session.user.id);
      await this.#end(tx, session.id);
    } else {
      await this.#end(tx, session.id);
      person = await this.#make(tx, newUserId, session.pendingIdentity, origin);
    }
    const { orgId, email } = person;
    if (orgId !== null) {
      if (!(await this.organizations.ownsDomain(tx, orgId, domainOfEmail(email)))) {
        throw refused('Your organization has not proven that it owns the domain of your e-mail.');
      }
      await this.claimAdmin.forMember(tx, { id: person.id, orgId, email }, origin);
    }
    return person;
  }

  async #end(tx: EntityManager, sessionId: string): Promise<void> {
    if (!(await this.sessions.end(tx, sessionId))) {
      throw new DomainError('unauthenticated', 'This session has ended. Sign in again.');
    }
  }

  async #lock(tx: EntityManager, userId: string): Promise<EnrollingPerson> {
    const user = await this.users.lock(tx, userId);
    if (!user?.active) throw new DomainError('account_inactive', 'This account is deactivated.');
    if (user.email === null) throw refused('This account has no e-mail address.');
    if (user.orgId !== null && !user.scimManaged) {
      await this.#assertOpen(tx, user.orgId);
    }
    return { id: user.id, orgId: user.orgId, email: user.email };
  }

  async #make(
    tx: EntityManager,
    id: string,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<EnrollingPerson> {
    const { email, organizationDomain } = identity;
    const organization =
      organizationDomain === null
        ? await this.#stayOutside(tx, identity)
        : await this.#joinOrFound(tx, organizationDomain, identity);
    const orgId = organization?.id ?? null;
    const made = await this.users.create(tx, { ...identity, id, orgId });
    if (!made || !(await this.users.bindIdentity(tx, id, identity))) {
      throw refused('An account with this e-mail address exists already. Sign in again.');
    }
    // Judged after the row is there: its unique address waited for a removal that was under way.
    if (orgId !== null && (await this.tombstones.forbidsNewMember(tx, orgId, identity))) {
      throw refused(REMOVED);
    }
    await this.audit.record(tx, {
      type: 'identity_bound',
      actorId: id,
      subjectId: id,
      orgId,
      origin,
      details: { provider: identity.provider, issuer: identity.issuer },
    });
    if (organization?.founded) {
      await this.claimAdmin.forFounder(tx, { id, orgId: organization.id, email }, origin);
    }
    return { id, orgId, email };
  }

  /**
   * Nobody stands beside an organization with an address in its domain: a consumer account on a corporate address is
   * not one of its people, and two people must never be one principal.
   */
  async #stayOutside(tx: EntityManager, identity: UpstreamIdentity): Promise<undefined> {
    const domain = domainOfEmail(identity.email);
    await this.organizations.lockDomain(tx, domain);
    if (await this.organizations.findByDomain(tx, domain, identity)) {
      throw refused(
        "Sign in as one of your organization's people: it owns the domain of your e-mail.",
      );
    }
  }

  async #joinOrFound(
    tx: EntityManager,
    domain: string,
    identity: UpstreamIdentity,
  ): Promise<{ id: string; founded: boolean }> {
    await this.organizations.lockDomain(tx, domain);
    const existing = await this.organizations.findByDomain(tx, domain, identity);
    if (!existing) {
      const id = await this.organizations.create(tx, domain, identity);
      const cause = { reason: 'domain claimed', revokedBy: 'organization' };
      await this.revocation.endOfOutsiders(tx, domain, cause);
      return { id, founded: true };
    }
    // Judged again: the organization may have been made, or SCIM begun, since this person signed in.
    if (!existing.acceptsProvider) {
      throw refused('Your organization does not accept sign-ins through this identity provider.');
    }
    await this.#assertOpen(tx, existing.id);
    return { id: existing.id, founded: false };
  }

  /** @throws DomainError enrollment_refused where SCIM alone makes members; it stays open until the transaction ends */
  async #assertOpen(tx: EntityManager, orgId: string): Promise<void> {
    const { membership } = await this.organizations.lockSettings(tx, orgId);
    if (membership === 'scim_only') throw refused(PROVISIONED);
  }
}

function refused(detail: string): DomainError {
  return new DomainError('enrollment_refused', detail);
}
