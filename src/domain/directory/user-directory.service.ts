import { Inject, Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import {
  sumOf,
  type RevocationCause,
  type RevocationScope,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { NotedAct } from '#domain/audit/noted-act.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import {
  assertVouched,
  isNamedBy,
  mayVouchFor,
  type VouchingProvider,
} from '#domain/providers/vouching.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import { REMOVED_BY_SCIM } from '#domain/organizations/membership.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import {
  forbidsAddress,
  forbidsNewMember,
  forgetIdentity,
} from '#domain/organizations/tombstones.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { AccountAudit, AdminCandidate, Deprovisioning, LockedAccount } from './account.js';
import { UsersRepository, type User } from './users.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The unique constraints that a write of an e-mail address violates if another user has the address
 * as e-mail address or as userName.
 */
const ADDRESS_CONSTRAINTS: ReadonlySet<string> = new Set([
  'users_email',
  'users_user_name',
  'users_user_name_key',
]);

/** The revocation events that end the access of a whole account. */
type EndOfAccount = Extract<
  RevocationScope,
  'account-deleted' | 'account-deactivated' | 'credentials-revoked'
>;

/**
 * The settings that decide who becomes an admin, and for which e-mail domains the service believes
 * an identity provider.
 */
export interface DirectoryConfig {
  readonly enrollment: Pick<Config['enrollment'], 'bootstrapAdmins'>;
  readonly upstream: { readonly providers: readonly VouchingProvider[] };
}

/**
 * Changes accounts of users, each in the caller's transaction. A caller that passes a
 * `LockedAccount` has locked the row of the user, and has decided that the change is allowed.
 */
@Injectable()
export class UserDirectory {
  readonly #security = new Logger('security');
  readonly #bootstrapAdmins: ReadonlySet<string> | undefined;
  readonly #providers: readonly VouchingProvider[];

  constructor(
    @Inject(CONFIG) config: DirectoryConfig,
    private readonly users: UsersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly accessRevocation: AccessRevocation,
    private readonly audit: AuditLog,
  ) {
    this.#bootstrapAdmins = config.enrollment.bootstrapAdmins;
    this.#providers = config.upstream.providers;
  }

  /**
   * Locks the row of a user until the transaction ends.
   *
   * @throws DomainError not_found
   */
  async lock(tx: EntityManager, userId: string): Promise<User> {
    const user = await this.users.lock(tx, userId);
    if (!user) throw new DomainError('not_found', 'There is no such user.');
    return user;
  }

  /**
   * Locks the row of an active user until the transaction ends.
   *
   * @throws DomainError account_inactive, also for a user who was removed
   */
  async lockActive(tx: EntityManager, userId: string): Promise<User> {
    const user = await this.users.lock(tx, userId);
    if (!user?.active) throw new DomainError('account_inactive', 'This account is deactivated.');
    return user;
  }

  /**
   * Refuses a user who is bound to no account at an identity provider, because the organization has
   * withdrawn the provider or lost the domain, or because the identity has moved to the
   * organization that owns the domain. The caller has locked the row of the user.
   *
   * @throws DomainError sign_in_refused
   */
  async assertBound(tx: EntityManager, { id }: Pick<User, 'id'>): Promise<void> {
    if (await this.users.isBound(tx, id)) return;
    throw new DomainError(
      'sign_in_refused',
      'Your account is bound to no identity provider any more: yours was withdrawn, or another organization owns the domain of your e-mail. Sign in through your identity provider first.',
    );
  }

  /**
   * Removes a user with the keys and applications of the user. The rows of revoked certificates
   * stay, because hosts must still refuse them.
   */
  async remove(
    tx: EntityManager,
    user: LockedAccount,
    deprovisioning: Deprovisioning,
  ): Promise<RevokedCounts> {
    await this.#warnOfLastAdmin(tx, user);
    return this.#endAccess(tx, user, 'account-deleted', deprovisioning, () =>
      this.users.remove(tx, user.id),
    );
  }

  /**
   * Ends the access of a user and keeps the account with its keys and memberships. Until the user
   * is activated again, the user cannot sign in, and nothing is issued to the user or to
   * applications of the user.
   */
  async deactivate(
    tx: EntityManager,
    user: LockedAccount,
    deprovisioning: Deprovisioning,
  ): Promise<RevokedCounts> {
    await this.#warnOfLastAdmin(tx, user);
    return this.#endAccess(tx, user, 'account-deactivated', deprovisioning, () =>
      this.users.setActive(tx, user.id, false),
    );
  }

  /**
   * Ends the sessions, certificates and keys of a user. The account stays: the user enrolls another
   * key after the next sign-in.
   */
  async revokeCredentials(
    tx: EntityManager,
    user: LockedAccount,
    deprovisioning: Deprovisioning,
  ): Promise<RevokedCounts> {
    return this.#endAccess(tx, user, 'credentials-revoked', deprovisioning);
  }

  /**
   * Takes the role of admin from a member, whose row is locked. The API tokens that the member made
   * lose the right to rotate SCIM tokens, and end within some days. Returns the counts of what
   * ended; undefined if the member was no admin.
   */
  async demote(
    tx: EntityManager,
    member: { readonly id: string; readonly orgId: string },
    cause: RevocationCause,
  ): Promise<RevokedCounts | undefined> {
    if (!(await this.users.setAdmin(tx, member, false))) return undefined;
    return this.accessRevocation.end(tx, [member], 'admin-demoted', cause);
  }

  /**
   * Ends the access of a user without an organization, whose identity has moved to the organization
   * that owns the domain of the e-mail address. The account stays with its keys, which log in to
   * nothing while it is bound to no identity.
   */
  async endOutsider(tx: EntityManager, user: LockedAccount): Promise<void> {
    const cause = { reason: 'domain claimed', revokedBy: 'organization' };
    await this.accessRevocation.end(tx, [user], 'domain-lost', cause);
  }

  /**
   * Ends the access that the event `scope` ends, changes the account by `change`, and records both
   * in the audit log. Returns the counts of what ended.
   */
  async #endAccess(
    tx: EntityManager,
    user: LockedAccount,
    scope: EndOfAccount,
    deprovisioning: Deprovisioning,
    change?: () => Promise<unknown>,
  ): Promise<RevokedCounts> {
    const revoked = await this.accessRevocation.end(tx, [user], scope, deprovisioning);
    const counts = sumOf([revoked, deprovisioning.endedByForeignKey ?? {}]);
    await change?.();
    const acts = [actOf(user, scope, deprovisioning)];
    await this.#record(tx, user, deprovisioning.audit, counts, acts);
    return counts;
  }

  /**
   * Lets a deactivated user sign in again. Sessions and certificates that ended do not come back.
   */
  async activate(tx: EntityManager, user: LockedAccount, audit: AccountAudit): Promise<void> {
    await this.users.setActive(tx, user.id, true);
    const acts = [{ kind: 'user_activated', userId: user.id }] as const;
    await this.#record(tx, user, audit, {}, acts);
  }

  /**
   * Returns true if the service may believe the e-mail address that this identity provider states
   * for the account. The address of a user that SCIM manages comes from SCIM, so it needs no check.
   */
  isVouchedAccount(user: User, { provider }: UpstreamIdentity): boolean {
    const { email, scimManaged } = user;
    return scimManaged || email === null || mayVouchFor(this.#providers, provider, email);
  }

  /**
   * Changes the e-mail address of a user to the one that the identity provider states. The access
   * that the user got under the old address ends. Nothing changes if SCIM manages the user, or if
   * the new address is outside the domains of the organization. The address also stays if another
   * user has the new address, or if a removed user or a SCIM record has or had it. The caller has
   * locked the directory of the organization by `lockDirectory`.
   */
  async followEmail(
    tx: EntityManager,
    user: User,
    email: string,
    origin: AuditOrigin,
  ): Promise<void> {
    const { id, orgId } = user;
    if (user.email === email || user.scimManaged || orgId === null) return;
    if (!(await this.organizations.ownsDomain(tx, orgId, domainOfEmail(email)))) return;
    if (await forbidsAddress(tx, orgId, email, id)) return;
    if (!(await this.#changeEmail(tx, id, email))) return;
    const cause = { reason: 'e-mail changed', revokedBy: 'upstream' };
    await this.accessRevocation.end(tx, [user], 'email-changed', cause);
    await this.#recordOwn(tx, 'email_changed', { id, orgId }, origin, {
      from: user.email,
      to: email,
    });
  }

  /**
   * Creates the user for an identity (an account at an identity provider).
   *
   * @throws DomainError enrollment_refused if the e-mail address has an account, the user was
   *   removed from the organization, or the service does not believe the provider for the domain of
   *   the address any more
   */
  async create(
    tx: EntityManager,
    { id, orgId }: Pick<User, 'id' | 'orgId'>,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<void> {
    assertVouched(this.#providers, identity, 'enrollment_refused');
    const created = await this.users.create(tx, { ...identity, id, orgId });
    if (!created || !(await this.users.bindIdentity(tx, id, identity))) {
      throw new DomainError(
        'enrollment_refused',
        'An account with this e-mail address exists already. Sign in again.',
      );
    }
    // This check comes after the INSERT, because the INSERT of the unique e-mail address waits for
    // another transaction that is removing the same user.
    if (orgId !== null && (await this.isRemoved(tx, orgId, identity))) {
      throw new DomainError('enrollment_refused', REMOVED_BY_SCIM);
    }
    await this.#recordBinding(tx, { id, orgId }, identity, origin);
  }

  /**
   * Adds the synthetic user of certification test mode, who belongs to no organization, or changes
   * the name of the existing one. Returns the id of the user.
   */
  ensureOutsider(
    tx: EntityManager,
    outsider: { readonly id: string; readonly email: string; readonly name: string },
  ): Promise<string> {
    return this.users.ensureOutsider(tx, outsider);
  }

  /**
   * Returns true if the user of this identity, or of its e-mail address, was removed from the
   * organization. A sign-in must then not create the user again.
   */
  isRemoved(tx: EntityManager, orgId: string, identity: UpstreamIdentity): Promise<boolean> {
    return forbidsNewMember(tx, orgId, identity);
  }

  /**
   * Binds an identity (an account at an identity provider) to a member, whose row is locked.
   * Returns false if the identity is bound already, or if the member has an identity already.
   *
   * @param isFurther true for a member who has just used the own security key, and may therefore
   *   have identities of several providers
   */
  async bind(
    tx: EntityManager,
    { id, orgId }: { readonly id: string; readonly orgId: string },
    identity: UpstreamIdentity,
    origin: AuditOrigin,
    isFurther: boolean,
  ): Promise<boolean> {
    if (!(await this.users.bindIdentity(tx, id, identity, isFurther))) return false;
    await this.users.updateName(tx, id, identity);
    await forgetIdentity(tx, orgId, identity);
    await this.#recordBinding(tx, { id, orgId }, identity, origin);
    return true;
  }

  /**
   * Founds the organization of a domain, and returns its id. Users without an organization whose
   * e-mail address is in the domain lose their SSH certificates, because the organization now owns
   * the domain.
   */
  async foundOrganization(
    tx: EntityManager,
    domain: string,
    identity: UpstreamIdentity,
  ): Promise<string> {
    assertVouched(this.#providers, identity, 'enrollment_refused');
    const isVouched = isNamedBy(this.#providers, identity.provider, domain);
    const id = await this.organizations.create(tx, domain, identity, isVouched);
    const cause = { reason: 'domain claimed', revokedBy: 'organization' };
    await this.accessRevocation.endOfOutsiders(tx, domain, cause);
    if (isVouched) await this.accessRevocation.claimDomain(tx, { orgId: id, domain }, cause);
    return id;
  }

  /**
   * Makes the user who founded an organization its first admin. If SVC_BOOTSTRAP_ADMINS is set,
   * only users in its list become the first admin, and only when they log in.
   */
  async appointFounder(
    tx: EntityManager,
    candidate: AdminCandidate,
    origin: AuditOrigin,
  ): Promise<void> {
    if (this.#bootstrapAdmins) return;
    if (!(await this.organizations.claimFirstAdmin(tx, candidate.orgId))) return;
    await this.#appoint(tx, candidate, origin, 'founder');
  }

  /**
   * Makes a user that SVC_BOOTSTRAP_ADMINS lists the admin of an organization without an active
   * admin. The organization must own the domain of the e-mail address, because an identity provider
   * could give a user any address.
   */
  async appointListed(
    tx: EntityManager,
    candidate: AdminCandidate,
    origin: AuditOrigin,
  ): Promise<void> {
    const { orgId, email } = candidate;
    if (!this.#bootstrapAdmins?.has(email)) return;
    if (!(await this.organizations.ownsDomain(tx, orgId, domainOfEmail(email)))) return;
    if (!(await this.organizations.claimVacantAdmin(tx, orgId))) return;
    await this.#appoint(tx, candidate, origin, 'SVC_BOOTSTRAP_ADMINS');
  }

  async #appoint(
    tx: EntityManager,
    candidate: AdminCandidate,
    origin: AuditOrigin,
    reason: string,
  ): Promise<void> {
    await this.users.setAdmin(tx, candidate, true);
    await this.#recordOwn(tx, 'admin_promote', candidate, origin, { reason });
  }

  /**
   * Changes the e-mail address of a user within a savepoint. If another transaction takes the same
   * address at this moment, only this change is undone. Returns false if the address is taken.
   */
  async #changeEmail(tx: EntityManager, userId: string, email: string): Promise<boolean> {
    try {
      return await withTransactionRetry(tx, (inner) =>
        this.users.changeEmail(inner, userId, email),
      );
    } catch (error) {
      if (ADDRESS_CONSTRAINTS.has(violatedConstraint(error) ?? '')) return false;
      throw error;
    }
  }

  /**
   * Logs a warning if an organization loses its last active admin because the account is removed or
   * deactivated. The act is not refused, because SCIM decides it. The next user who signs in does
   * not become an admin.
   */
  async #warnOfLastAdmin(tx: EntityManager, user: LockedAccount): Promise<void> {
    const { id: userId, orgId } = user;
    if (orgId === null || !user.isOrgAdmin || !user.active) return;
    if (await this.organizations.hasOtherAdmin(tx, orgId, userId)) return;
    this.#security.warn({ userId, orgId }, 'an organization is left without an active admin');
  }

  async #record(
    tx: EntityManager,
    { id, orgId }: LockedAccount,
    { details, ...audit }: AccountAudit,
    counts: RevokedCounts,
    acts: readonly NotedAct[],
  ): Promise<void> {
    const event = { ...audit, subjectId: id, orgId, details: { ...details, ...counts }, acts };
    await this.audit.record(tx, event);
  }

  #recordBinding(
    tx: EntityManager,
    user: Pick<User, 'id' | 'orgId'>,
    { provider, issuer }: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<void> {
    return this.#recordOwn(tx, 'identity_bound', user, origin, { provider, issuer });
  }

  /**
   * Records an event that a user caused for the own account, so that actor and subject are the same
   * user.
   */
  #recordOwn(
    tx: EntityManager,
    type: 'identity_bound' | 'email_changed' | 'admin_promote',
    { id, orgId }: Pick<User, 'id' | 'orgId'>,
    origin: AuditOrigin,
    details: object,
  ): Promise<void> {
    const event = { type, actorId: id, subjectId: id, orgId, origin, details: { ...details } };
    return this.audit.record(tx, event);
  }
}

/**
 * Returns the record of an act that ended the access of an account. Each replica remembers the acts
 * that it committed, so that it can repeat this act if a failover of the database loses the commit.
 */
function actOf(
  { id: userId, orgId }: LockedAccount,
  scope: EndOfAccount,
  { reason, revokedBy, audit }: Deprovisioning,
): NotedAct {
  const about = { userId, revokedBy, reason };
  if (scope === 'account-deleted') return { kind: 'user_removed', orgId, ...about };
  if (scope === 'account-deactivated') return { kind: 'user_deactivated', orgId, ...about };
  const demandsPass = audit.type === 'enrollment_pass_created';
  return { kind: 'credentials_revoked', demandsPass, ...about };
}
