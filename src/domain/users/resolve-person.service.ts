import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { TombstonesRepository } from '#domain/organizations/tombstones.repository.js';
import { ChangeEmail } from './change-email.service.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import { UsersRepository, type User } from './users.repository.js';

/** The user an upstream identity stands for; `orgId` is the organization that an unknown or refused person comes to. */
export type Person =
  | { readonly kind: 'known'; readonly user: User }
  | { readonly kind: 'nobody yet'; readonly orgId: string | null }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly user?: User;
      readonly orgId: string | null;
    };

const DEACTIVATED = 'This account is deactivated.';
/** The answer to a person that SCIM did not make, where it alone makes members. */
export const PROVISIONED = 'Your organization provisions its people itself: ask its administrator.';
/** The answer to a person that SCIM removed, and has not made again. */
export const REMOVED =
  'Your organization has removed this account: ask its administrator to provision it again.';

/**
 * Who is signing in: first the bound identity; else the unbound member with that e-mail in the organization that owns
 * its domain, who is bound now; else nobody yet.
 */
@Injectable()
export class ResolvePerson {
  constructor(
    private readonly users: UsersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly changeEmail: ChangeEmail,
    private readonly tombstones: TombstonesRepository,
    private readonly audit: AuditLog,
  ) {}

  /** The user of a bound identity. */
  bound(tx: EntityManager, { issuer, subject }: UpstreamIdentity): Promise<User | undefined> {
    return this.users.findByIdentity(tx, issuer, subject);
  }

  /** Resolves an identity, and binds it where it stands for a member who is not bound yet. */
  async resolve(
    tx: EntityManager,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<Person> {
    const bound = await this.bound(tx, identity);
    if (!bound) return this.#unbound(tx, identity, origin);
    // Judged under the row's lock: a de-provisioning that was a moment faster has ended this account.
    const user = await this.users.lock(tx, bound.id);
    if (!user) return { kind: 'refused', reason: 'This account was removed.', orgId: bound.orgId };
    if (!user.active) return { kind: 'refused', reason: DEACTIVATED, user, orgId: user.orgId };
    await this.users.followName(tx, user.id, identity);
    await this.changeEmail.followUpstream(tx, user, identity.email, origin);
    return { kind: 'known', user };
  }

  async #unbound(
    tx: EntityManager,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<Person> {
    const domain = domainOfEmail(identity.email);
    const organization = await this.organizations.findByDomain(tx, domain, identity);
    if (!organization) return { kind: 'nobody yet', orgId: null };
    const member = await this.users.lockMember(tx, organization.id, identity.email);
    const refused = (reason: string): Person => ({
      kind: 'refused',
      reason,
      orgId: organization.id,
      ...(member ? { user: member } : {}),
    });
    if (!organization.acceptsProvider) {
      return refused('Your organization does not accept sign-ins through this identity provider.');
    }
    if (!member) {
      if (organization.membership === 'scim_only') return refused(PROVISIONED);
      return (await this.tombstones.forbidsNewMember(tx, organization.id, identity))
        ? refused(REMOVED)
        : { kind: 'nobody yet', orgId: organization.id };
    }
    if (!member.active) return refused(DEACTIVATED);
    if (!(await this.users.bindIdentity(tx, member.id, identity))) {
      // Bound by another sign-in of the same person a moment ago, or somebody else's for good.
      const bound = await this.bound(tx, identity);
      if (bound?.id === member.id) return { kind: 'known', user: bound };
      return refused('This account is bound to another sign-in.');
    }
    await this.users.followName(tx, member.id, identity);
    await this.tombstones.forgetIdentity(tx, organization.id, identity);
    await this.audit.record(tx, {
      type: 'identity_bound',
      actorId: member.id,
      subjectId: member.id,
      orgId: organization.id,
      origin,
      details: { provider: identity.provider, issuer: identity.issuer },
    });
    return { kind: 'known', user: member };
  }
}
