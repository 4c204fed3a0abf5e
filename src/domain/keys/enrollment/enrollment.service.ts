import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  AuthenticatorsRepository,
  type Authenticator,
} from '../authenticators/authenticators.repository.js';
import type { VerifiedRegistration } from '../authenticators/webauthn-ceremonies.service.js';
import { consumePass } from '../enrollment-passes/enrollment-passes.repository.js';
import { decidePass, passInvalid } from '../enrollment-passes/enrollment-pass.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import {
  DOMAIN_NEEDS_PROOF,
  MEMBERS_BY_SCIM_ONLY,
  OTHER_PROVIDER,
  SUBDOMAIN_OF_PROVEN,
} from '#domain/organizations/membership.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { noteProviderLogin } from '#domain/sessions/provider-login/provider-login.repository.js';
import {
  assuranceOf,
  type BootstrapSession,
  type LiveSession,
  type PendingSession,
  type VerifiedSession,
} from '#domain/sessions/session.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { alreadyEnrolled, MOST_KEYS, tooManyKeys } from './enrollment-policy.js';
import { isFipsKey } from '../authenticators/authenticator-models.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** A verified registration, and the name that the user gives the key. */
export interface NewKey extends VerifiedRegistration {
  readonly name: string;
}

/**
 * A request to enroll the first key of a user, in the session that a login at the identity provider
 * opened.
 */
export interface FirstKey {
  readonly session: BootstrapSession | PendingSession;
  readonly newKey: NewKey;
  /**
   * The user id that is stored in the key (user handle). If the enrollment creates the user, the
   * user gets this id.
   */
  readonly newUserId: string;
  /** The SHA-256 of the re-enrollment pass that the user sent; undefined without one. */
  readonly passHash: Buffer | undefined;
}

/**
 * A first key that was enrolled, and the session that replaces the bootstrap session (the session
 * after a login at the identity provider). The new session is verified if the key verified the PIN
 * or fingerprint of its user. Otherwise it is a bootstrap session again, in which the user must log
 * in with the key.
 */
export interface Enrolled {
  readonly key: Authenticator;
  readonly session: OpenedSession;
  readonly level: 'bootstrap' | 'verified';
}

/**
 * The reason why an enrollment was refused: an error of the service, or an error that the browser
 * reported.
 */
export interface RefusedEnrollment {
  readonly code: string;
  readonly reason: string;
}

/** The user who enrolls a key. The row of the user is locked. */
interface EnrollingUser {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string;
}

/**
 * The errors that the audit log does not record as refusals of a key. They occur if the request
 * came too late, twice, or without a session, and say nothing about the key.
 */
const NOT_ABOUT_KEY: ReadonlySet<ErrorCode> = new Set(['invalid_state', 'unauthenticated']);

/**
 * Enrolls the first key of a user. One transaction ends the bootstrap session, creates the user if
 * the identity is new, adds the key and opens the next session. So all of it happens, or nothing.
 */
@Injectable()
export class Enrollment {
  constructor(
    private readonly dataSource: DataSource,
    private readonly directory: UserDirectory,
    private readonly organizations: OrganizationsRepository,
    private readonly keys: AuthenticatorsRepository,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Enrolls the first key of a user from a verified registration.
   *
   * @throws DomainError already_enrolled, enrollment_refused, enrollment_pass_required,
   *   enrollment_pass_invalid, credential_exists, account_inactive, unauthenticated
   */
  async enroll(first: FirstKey, origin: AuditOrigin): Promise<Enrolled> {
    const { attestation, aaguid, userVerified } = first.newKey;
    try {
      return await withTransactionRetry(this.dataSource, async (tx) => {
        const { id, orgId } = await this.#lockOrCreate(tx, first, origin);
        const none = { fewerThan: 1, isUsed: userVerified };
        const key = await this.keys.add(tx, id, first.newKey, none);
        if (!key) throw alreadyEnrolled();
        await this.audit.record(tx, {
          type: 'enrollment',
          actorId: id,
          subjectId: id,
          orgId,
          origin,
          details: { key_id: key.id, attestation, aaguid, user_verified: userVerified },
        });
        return { key, ...(await this.#openNext(tx, id, key.id, first.newKey, origin)) };
      });
    } catch (error) {
      throw asCredentialExists(error);
    }
  }

  /**
   * Adds a further key of a user. The user has logged in with an existing key, and the session of
   * that login stays as it is.
   *
   * @throws DomainError limit_reached, enrollment_refused, credential_exists, account_inactive,
   *   unauthenticated
   */
  async addKey(
    session: VerifiedSession,
    newKey: NewKey,
    origin: AuditOrigin,
  ): Promise<Authenticator> {
    const { name, attestation, aaguid, userVerified } = newKey;
    try {
      return await withTransactionRetry(this.dataSource, async (tx) => {
        const { id, orgId, email } = await this.directory.lockActive(tx, session.user.id);
        await this.sessions.assertHeld(tx, session.id);
        if (orgId !== null) await this.#assertOwnDomain(tx, orgId, email);
        const most = { fewerThan: MOST_KEYS, isUsed: false };
        const key = await this.keys.add(tx, id, newKey, most);
        if (!key) throw tooManyKeys();
        await this.audit.record(tx, {
          type: 'key_registered',
          actorId: id,
          subjectId: id,
          orgId,
          origin,
          details: { key_id: key.id, name, attestation, aaguid, user_verified: userVerified },
        });
        return key;
      });
    } catch (error) {
      throw asCredentialExists(error);
    }
  }

  /**
   * Runs a step of an enrollment. If the step is refused, the refusal is recorded after the
   * transaction of the step, because the rollback of that transaction would remove the record.
   */
  async recordingRefusal<Result>(
    session: LiveSession,
    origin: AuditOrigin,
    step: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await step();
    } catch (error) {
      if (error instanceof DomainError && error.status < 500 && !NOT_ABOUT_KEY.has(error.code)) {
        const refusal = { code: error.code, reason: error.detail };
        await this.recordRefusal(session, refusal, origin);
      }
      throw error;
    }
  }

  /**
   * Records a refused enrollment in the audit log, in which the user and the admins of the
   * organization can read it.
   */
  async recordRefusal(
    { user, pendingIdentity }: LiveSession,
    refusal: RefusedEnrollment,
    origin: AuditOrigin,
  ): Promise<void> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      const orgId = user ? user.orgId : await this.#organizationOf(tx, pendingIdentity);
      const { email } = user ?? pendingIdentity;
      await this.audit.record(tx, {
        type: 'enrollment_refused',
        actorId: user?.id ?? null,
        subjectId: user?.id ?? null,
        orgId,
        origin,
        details: { email, ...refusal },
      });
    });
  }

  /**
   * Finds the organization that a new user with this identity (account at an identity provider)
   * would join; null if there is none, or if it does not accept the provider.
   */
  async #organizationOf(tx: EntityManager, identity: UpstreamIdentity): Promise<string | null> {
    const domain = domainOfEmail(identity.email);
    const found = await this.organizations.findByDomain(tx, domain, identity);
    return found?.acceptsProvider ? found.id : null;
  }

  /**
   * Ends the bootstrap session and returns its user with the row locked. It is an existing user, or
   * a new user for the identity of the upstream login. If two requests enroll in one session, the
   * second finds the session ended.
   *
   * An existing user is locked before the session ends, because access revocation locks in the same
   * order. Before that, the directory of the organization is locked, so that no other transaction
   * changes meanwhile who may be a member.
   */
  async #lockOrCreate(
    tx: EntityManager,
    { session, newUserId, passHash }: FirstKey,
    origin: AuditOrigin,
  ): Promise<EnrollingUser> {
    let user: EnrollingUser;
    if (session.user) {
      const { orgId: directory } = session.user;
      if (directory !== null) await this.organizations.lockDirectory(tx, directory);
      user = await this.#lock(tx, session.user.id, passHash !== undefined);
      await noteProviderLogin(tx, user.id, session.id);
      await this.#end(tx, session.id);
      const pass = { userId: user.id, orgId: user.orgId, hash: passHash };
      decidePass(await consumePass(tx, pass, origin));
    } else {
      if (passHash) throw passInvalid();
      await noteProviderLogin(tx, newUserId, session.id);
      await this.#end(tx, session.id);
      user = await this.#create(tx, newUserId, session.pendingIdentity, origin);
    }
    const { id, orgId, email } = user;
    if (orgId !== null) {
      await this.#assertOwnDomain(tx, orgId, email);
      await this.directory.appointListed(tx, { id, orgId, email }, origin);
    }
    return user;
  }

  /**
   * Checks that the organization of a user owns the domain of the user's e-mail address.
   *
   * @throws DomainError enrollment_refused
   */
  async #assertOwnDomain(tx: EntityManager, orgId: string, email: string | null): Promise<void> {
    if (email !== null && (await this.organizations.ownsDomain(tx, orgId, domainOfEmail(email)))) {
      return;
    }
    throw refused('Your organization has not proven that it owns the domain of your e-mail.');
  }

  async #end(tx: EntityManager, sessionId: string): Promise<void> {
    if (!(await this.sessions.end(tx, sessionId))) {
      throw new DomainError('unauthenticated', 'This session has ended. Sign in again.');
    }
  }

  /**
   * Locks the user and the organization, and checks that the user may enroll a key.
   *
   * @param bringsPass true for a user who sends a re-enrollment pass, which the caller verifies.
   *   Such a user may enroll even if only SCIM creates members
   */
  async #lock(tx: EntityManager, userId: string, bringsPass: boolean): Promise<EnrollingUser> {
    const { id, orgId, email, scimManaged } = await this.directory.lockActive(tx, userId);
    if (email === null) throw refused('This account has no e-mail address.');
    if (orgId !== null && !scimManaged && !bringsPass) await this.#assertOpen(tx, orgId);
    return { id, orgId, email };
  }

  async #create(
    tx: EntityManager,
    id: string,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<EnrollingUser> {
    const { email, organizationDomain } = identity;
    const organization =
      organizationDomain === null
        ? await this.#assertOutsider(tx, identity)
        : await this.#joinOrFound(tx, organizationDomain, identity);
    const orgId = organization?.id ?? null;
    await this.directory.create(tx, { id, orgId }, identity, origin);
    if (organization?.founded) {
      await this.directory.appointFounder(tx, { id, orgId: organization.id, email }, origin);
    }
    return { id, orgId, email };
  }

  /**
   * Refuses a user without an organization whose e-mail address is in the domain of an
   * organization. Such an address can belong to a private account at an identity provider, which
   * does not make its user a member. If the user were accepted, a member could have the same
   * address and so the same SSH principal.
   */
  async #assertOutsider(tx: EntityManager, identity: UpstreamIdentity): Promise<undefined> {
    const domain = domainOfEmail(identity.email);
    await this.organizations.lockDomain(tx, domain);
    if (await this.organizations.findByDomain(tx, domain, identity)) {
      throw refused(
        "Sign in as one of your organization's people: it owns the domain of your e-mail.",
      );
    }
    if (await this.organizations.needsProof(tx, domain)) throw refused(DOMAIN_NEEDS_PROOF);
  }

  async #joinOrFound(
    tx: EntityManager,
    domain: string,
    identity: UpstreamIdentity,
  ): Promise<{ id: string; founded: boolean }> {
    await this.organizations.lockDomain(tx, domain);
    const existing = await this.organizations.findByDomain(tx, domain, identity);
    if (!existing) {
      if (await this.organizations.needsProof(tx, domain)) throw refused(DOMAIN_NEEDS_PROOF);
      if (await this.organizations.isUnderForeignProof(tx, domain, identity)) {
        throw refused(SUBDOMAIN_OF_PROVEN);
      }
      return { id: await this.directory.foundOrganization(tx, domain, identity), founded: true };
    }
    // The sign-in has already checked the provider and the membership. Both are checked again,
    // because the organization may have been founded, or may have got its first SCIM token, since
    // then.
    if (!existing.acceptsProvider) throw refused(OTHER_PROVIDER);
    await this.organizations.lockDirectory(tx, existing.id);
    await this.#assertOpen(tx, existing.id);
    return { id: existing.id, founded: false };
  }

  /**
   * Locks the settings of an organization, and refuses the enrollment if only SCIM creates members.
   *
   * @throws DomainError enrollment_refused
   */
  async #assertOpen(tx: EntityManager, orgId: string): Promise<void> {
    const { membership } = await this.organizations.lockSettings(tx, orgId);
    if (membership === 'scim_only') throw refused(MEMBERS_BY_SCIM_ONLY);
  }

  /**
   * Opens the session that follows an enrollment. If the key verified its user, the enrollment
   * counts as the first login, and the session is verified. Otherwise the user must log in with the
   * key next.
   */
  async #openNext(
    tx: EntityManager,
    userId: string,
    authenticatorId: string,
    newKey: FirstKey['newKey'],
    origin: AuditOrigin,
  ): Promise<Pick<Enrolled, 'session' | 'level'>> {
    const { userVerified } = newKey;
    const level = userVerified ? 'verified' : 'bootstrap';
    const next = userVerified
      ? ({
          level: 'verified',
          userId,
          authenticatorId,
          ...assuranceOf(true),
          isFipsKey: isFipsKey(newKey),
        } as const)
      : ({ level: 'bootstrap', userId } as const);
    return { session: await this.sessions.open(tx, next, origin), level };
  }
}

/**
 * Turns the violation of the unique index on credential ids into the error `credential_exists`;
 * returns any other error unchanged.
 */
function asCredentialExists(error: unknown): unknown {
  if (violatedConstraint(error) !== 'authenticators_credential_id_key') return error;
  return new DomainError('credential_exists', 'This key is registered already.', { cause: error });
}

function refused(detail: string): DomainError {
  return new DomainError('enrollment_refused', detail);
}
