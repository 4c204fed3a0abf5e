import { Injectable, Logger } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { findRecordOfSignIn } from '#domain/directory/sign-in-record.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import { UsersRepository, type User } from '#domain/directory/users.repository.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import { unbindUsersOfDomain } from '#domain/organizations/domains/domain-owners.repository.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import {
  DEACTIVATED,
  DOMAIN_NEEDS_PROOF,
  MEMBERS_BY_SCIM_ONLY,
  OTHER_PROVIDER,
  REMOVED_BY_SCIM,
  SUBDOMAIN_OF_PROVEN,
} from '#domain/organizations/membership.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * An identity (account at an identity provider) that may not sign in. `orgId` is the organization
 * whose audit log gets the refusal.
 */
export interface RefusedIdentity {
  readonly kind: 'refused';
  readonly reason: string;
  readonly user?: User;
  readonly orgId: string | null;
  /** The ids of the users that have the e-mail address, if there are several. */
  readonly records?: readonly string[];
}

/**
 * The result of the search for the user of an identity (account at an identity provider). `known`:
 * the identity belongs to a user. `new`: there is no such user, and an enrollment may create one.
 * `refused`: the sign-in is not allowed.
 */
export type LinkedIdentity =
  | { readonly kind: 'known'; readonly user: User }
  | { readonly kind: 'new'; readonly orgId: string | null }
  | RefusedIdentity;

const SIGN_IN_AGAIN = 'Your account has changed meanwhile. Sign in again.';
const NOT_VOUCHED =
  'This identity provider does not sign in users of the e-mail domain of your account. Ask the operator of the service.';
const BOUND_TO_ANOTHER =
  'This account is bound to another sign-in. To add this one, log in with your security key, then sign in here within 5 minutes.';

/**
 * An error that rolls back the move of a user to an organization, because the organization refuses
 * the sign-in.
 */
class RefusedMove extends Error {}

/**
 * Finds the user of an identity (account at an identity provider), or binds the identity to a user.
 */
@Injectable()
export class IdentityLinks {
  readonly #security = new Logger('security');

  constructor(
    private readonly users: UsersRepository,
    private readonly directory: UserDirectory,
    private readonly organizations: OrganizationsRepository,
  ) {}

  /**
   * Finds the user of an identity (account at an identity provider). If the identity is bound to a
   * user, that user gets the name that the provider states. The user also gets the e-mail address,
   * unless SCIM manages the user.
   *
   * If the identity is bound to no user yet, {@link findRecordOfSignIn} looks for a member with the
   * identity's e-mail address. It looks in the organization that owns the domain of the address.
   * This method then binds the identity to that member. A member who already has an identity of
   * another provider must be the user `proven`.
   *
   * @param proven the user who has used the own security key in this browser a short time ago
   * @returns `new` if there is no such user and an enrollment may create one; `refused`, which is
   *   no error, for a sign-in that is not allowed
   */
  async link(
    tx: EntityManager,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
    proven: string | undefined,
  ): Promise<LinkedIdentity> {
    const bound = await this.#findBound(tx, identity);
    if (!bound) return this.#linkUnbound(tx, identity, origin, proven);
    const { orgId } = bound;
    const moved = orgId === null ? await this.#moveToOwner(tx, bound, identity, origin) : undefined;
    if (moved) return moved;
    // The provider is locked before the user, because a transaction that withdraws the provider
    // locks in this order. The opposite order could deadlock.
    if (orgId !== null && !(await this.organizations.holdProvider(tx, orgId, identity))) {
      return { kind: 'refused', reason: OTHER_PROVIDER, user: bound, orgId };
    }
    const isNewAddress = !bound.scimManaged && bound.email !== identity.email;
    if (orgId !== null && isNewAddress) await this.organizations.lockDirectory(tx, orgId);
    // The user is read again under the lock, because the user may have been removed or deactivated
    // meanwhile.
    const user = await this.users.lock(tx, bound.id);
    if (!user) return { kind: 'refused', reason: 'This account was removed.', orgId: bound.orgId };
    if (!user.active) return { kind: 'refused', reason: DEACTIVATED, user, orgId: user.orgId };
    // An admin may have separated the user and the identity since the first read, so that the
    // identity now belongs to another user.
    if ((await this.#findBound(tx, identity))?.id !== user.id) {
      return { kind: 'refused', reason: SIGN_IN_AGAIN, user, orgId };
    }
    if (!this.directory.isVouchedAccount(user, identity)) {
      return { kind: 'refused', reason: NOT_VOUCHED, user, orgId };
    }
    await this.users.updateTenant(tx, identity);
    await this.users.updateName(tx, user.id, identity);
    if (isNewAddress) await this.directory.followEmail(tx, user, identity.email, origin);
    return { kind: 'known', user };
  }

  /**
   * Lets a user without an organization sign in to the organization that has come to own the domain
   * of the user's e-mail address. Nothing is issued to the old account any more, and no admin can
   * remove it. So its sessions and its bindings to identities end, and the identity is handled like
   * a new one.
   *
   * A deactivated account does not move, and neither does one that needs a re-enrollment pass.
   * Otherwise a thief of the account at the identity provider could enroll a key without the pass.
   *
   * @returns undefined if no organization owns the domain, or if the organization refuses the
   *   sign-in. The bindings then stay
   */
  async #moveToOwner(
    tx: EntityManager,
    { id, orgId, email }: User,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<LinkedIdentity | undefined> {
    const domain = domainOfEmail(identity.email);
    if (email === null || domainOfEmail(email) !== domain) return undefined;
    // An enrollment refuses a private account with an address in the domain of an organization.
    if (identity.organizationDomain === null) return undefined;
    const owner = await this.organizations.findByDomain(tx, domain, identity);
    if (!owner?.acceptsProvider) return undefined;
    // The directory of the organization is locked before the user, as in every sign-in.
    await this.organizations.lockDirectory(tx, owner.id);
    const user = await this.users.lock(tx, id);
    if (!user?.active || (await this.users.needsPass(tx, id))) return undefined;
    try {
      return await withTransactionRetry(tx, async (inner) => {
        await unbindUsersOfDomain(inner, [{ id, orgId, inDomain: true }], { domain }, origin);
        const linked = await this.#linkUnbound(inner, identity, origin, undefined);
        if (linked.kind === 'refused') throw new RefusedMove();
        await this.directory.endOutsider(inner, user);
        return linked;
      });
    } catch (error) {
      if (error instanceof RefusedMove) return undefined;
      throw error;
    }
  }

  async #linkUnbound(
    tx: EntityManager,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
    proven: string | undefined,
  ): Promise<LinkedIdentity> {
    const domain = domainOfEmail(identity.email);
    const organization = await this.organizations.findByDomain(tx, domain, identity);
    if (!organization) {
      const refusal = await this.#refusalOfNewOrganization(tx, domain, identity);
      return refusal === undefined
        ? { kind: 'new', orgId: null }
        : { kind: 'refused', reason: refusal, orgId: null };
    }
    const orgId = organization.id;
    // The member and the settings are read after the directory of the organization is locked, so
    // that no other sign-in changes them meanwhile.
    await this.organizations.lockDirectory(tx, orgId);
    const found = await findRecordOfSignIn(this.users, tx, orgId, identity);
    const refused = (reason: string): LinkedIdentity => ({
      kind: 'refused',
      reason,
      orgId,
      ...(found.user ? { user: found.user } : {}),
      ...(found.records ? { records: found.records } : {}),
    });
    if (!organization.acceptsProvider) return refused(OTHER_PROVIDER);
    if (found.refusal !== undefined) return refused(found.refusal);
    const member = found.user;
    if (!member) {
      const settings = await this.organizations.settings(tx, orgId);
      if (settings?.membership !== 'open') return refused(MEMBERS_BY_SCIM_ONLY);
      const isRemoved = await this.directory.isRemoved(tx, orgId, identity);
      return isRemoved ? refused(REMOVED_BY_SCIM) : { kind: 'new', orgId };
    }
    const account = { id: member.id, orgId };
    if (await this.directory.bind(tx, account, identity, origin, proven === member.id)) {
      if (found.isByMail) this.#warnOfMail(member, orgId, identity);
      return { kind: 'known', user: member };
    }
    // A concurrent sign-in of the same user may have bound the identity, which is fine. If it is
    // bound to another user, the sign-in is refused, because a binding never changes.
    const bound = await this.#findBound(tx, identity);
    if (bound?.id === member.id) return { kind: 'known', user: bound };
    return refused(BOUND_TO_ANOTHER);
  }

  /**
   * Decides if a first user may found an organization for an e-mail domain. The caller has checked
   * that no organization owns the domain. A domain that needs a new proof by DNS, or that lies
   * below a domain that another organization has proven, is refused.
   *
   * @returns the reason of the refusal; undefined if it is allowed
   */
  async #refusalOfNewOrganization(
    tx: EntityManager,
    domain: string,
    identity: UpstreamIdentity,
  ): Promise<string | undefined> {
    if (await this.organizations.needsProof(tx, domain)) return DOMAIN_NEEDS_PROOF;
    if (identity.organizationDomain === null) return undefined;
    const isForeign = await this.organizations.isUnderForeignProof(
      tx,
      identity.organizationDomain,
      identity,
    );
    return isForeign ? SUBDOMAIN_OF_PROVEN : undefined;
  }

  /**
   * Logs a warning that an identity was bound to a SCIM record by an e-mail address that is not its
   * userName. Admins can then check that both addresses belong to one person.
   */
  #warnOfMail({ id }: User, orgId: string, { provider, email }: UpstreamIdentity): void {
    this.#security.warn(
      { orgId, userId: id, provider, email },
      'an identity is bound to a record by an address that is not its userName',
    );
  }

  #findBound(tx: EntityManager, { issuer, subject }: UpstreamIdentity): Promise<User | undefined> {
    return this.users.findByIdentity(tx, issuer, subject);
  }
}
