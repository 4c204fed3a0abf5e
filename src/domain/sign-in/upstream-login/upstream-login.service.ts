import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { UsersRepository } from '#domain/directory/users.repository.js';
import type { ReturnedSignIn } from '#domain/providers/identity-providers.service.js';
import { reportOf } from '#domain/providers/openid/sign-in-failure.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import { RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  IdentityLinks,
  type LinkedIdentity,
  type RefusedIdentity,
} from './identity-links.service.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The result of a sign-in at an identity provider. `next` is the step that follows: a login with a
 * key, or the enrollment of a key.
 */
export interface SignedIn {
  /** A bootstrap session; undefined if the browser keeps its verified session. */
  readonly session: OpenedSession | undefined;
  readonly next: 'enroll' | 'login';
}

/**
 * Signs users in through an identity provider. A sign-in opens a bootstrap session, which opens
 * pages and the enrollment of a first key.
 */
@Injectable()
export class UpstreamLogin {
  readonly #security = new Logger('security');

  constructor(
    private readonly dataSource: DataSource,
    private readonly users: UsersRepository,
    private readonly links: IdentityLinks,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Opens a bootstrap session for the user who returns from an identity provider, and ends the
   * previous session of the browser. If that session is a verified session of the same user, it
   * stays. If a page of another site started the sign-in, the sign-in cannot end the verified
   * session of another user.
   *
   * @param previous the session that the browser had until now
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable, each with an audit
   *   event
   */
  async signIn(
    returned: ReturnedSignIn,
    origin: AuditOrigin,
    previous: LiveSession | undefined,
  ): Promise<SignedIn> {
    const identity = await this.#identify(returned, origin);
    const outcome = await withTransactionRetry(this.dataSource, async (tx) => {
      const unwanted = await this.#refusedSwitch(tx, returned, identity, previous);
      const proven = returned.crossSite ? undefined : this.#provenUser(previous);
      const linked = unwanted ?? (await this.links.link(tx, identity, origin, proven));
      if (linked.kind !== 'refused') return this.#open(tx, linked, identity, origin, previous);
      if (!unwanted) await this.#record(tx, 'identity_bind_refused', linked, identity, origin);
      await this.#record(tx, 'upstream_login_refused', linked, identity, origin);
      return linked;
    });
    // The error is thrown after the transaction, because an error inside would roll back the audit
    // events of the refusal.
    if (outcome.kind === 'refused') {
      const { reason, user, records } = outcome;
      const about = { userId: user?.id, provider: identity.provider, records };
      this.#security.warn(about, `refused: ${reason}`);
      throw new DomainError('sign_in_refused', reason);
    }
    // The previous session ends after the transaction, because it may belong to another user. A
    // transaction that locks two users in no fixed order can deadlock with another one.
    if (outcome.session && previous) {
      await this.sessions.end(this.dataSource.manager, previous.id);
    }
    return outcome;
  }

  /** Reads the identity that the provider returned, and records a failure in the audit log. */
  async #identify(returned: ReturnedSignIn, origin: AuditOrigin): Promise<UpstreamIdentity> {
    try {
      return await returned.identify();
    } catch (error) {
      if (error instanceof DomainError) await this.recordFailure(returned.provider, error, origin);
      throw error;
    }
  }

  /** Records in the audit log that a provider did not sign a user in. */
  recordFailure(provider: string, error: DomainError, origin: AuditOrigin): Promise<void> {
    const { error: reported, errorDescription, reason } = reportOf(error);
    return this.audit.record(this.dataSource.manager, {
      type: 'upstream_login_refused',
      actorId: null,
      subjectId: null,
      orgId: null,
      origin,
      details: {
        provider,
        code: error.code,
        reason: reason ?? error.detail,
        ...(reported === undefined ? {} : { error: reported }),
        ...(errorDescription === undefined ? {} : { error_description: errorDescription }),
      },
    });
  }

  /**
   * Refuses a sign-in that a page of another site started, if it is for another user than the one
   * who is logged in. The transaction has changed nothing at this point.
   */
  async #refusedSwitch(
    tx: EntityManager,
    { crossSite }: ReturnedSignIn,
    identity: UpstreamIdentity,
    previous: LiveSession | undefined,
  ): Promise<RefusedIdentity | undefined> {
    if (!crossSite || previous?.level !== 'verified') return undefined;
    const user = await this.users.findByIdentity(tx, identity.issuer, identity.subject);
    if (user?.id === previous.user.id) return undefined;
    return {
      kind: 'refused',
      reason: 'You are logged in as another user. Log out first, then sign in.',
      orgId: user?.orgId ?? null,
      ...(user ? { user } : {}),
    };
  }

  /**
   * Returns the user of the browser's session if a security key was touched in it in the last 5
   * minutes ({@link RECENT_TOUCH}); otherwise undefined.
   */
  #provenUser(previous: LiveSession | undefined): string | undefined {
    if (previous?.level !== 'verified') return undefined;
    const isRecent = this.sessions.isTouchedWithin(RECENT_TOUCH.admin, previous);
    return isRecent ? previous.user.id : undefined;
  }

  #record(
    tx: EntityManager,
    type: 'identity_bind_refused' | 'upstream_login_refused',
    { user, orgId, reason, records }: RefusedIdentity,
    { provider, email }: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<void> {
    const details = { provider, email, reason, ...(records ? { records } : {}) };
    const subjectId = user?.id ?? null;
    return this.audit.record(tx, { type, actorId: null, subjectId, orgId, origin, details });
  }

  async #open(
    tx: EntityManager,
    linked: Exclude<LinkedIdentity, RefusedIdentity>,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
    previous: LiveSession | undefined,
  ): Promise<SignedIn & { readonly kind: 'signed in' }> {
    const user = linked.kind === 'known' ? linked.user : undefined;
    const { provider, issuer, email } = identity;
    await this.audit.record(tx, {
      type: 'upstream_login',
      actorId: user?.id ?? null,
      subjectId: user?.id ?? null,
      orgId: linked.kind === 'known' ? linked.user.orgId : linked.orgId,
      origin,
      details: { provider, issuer, email },
    });
    if (user && previous?.level === 'verified' && previous.user.id === user.id) {
      // The session may have ended in this transaction, because a new e-mail address of the user
      // ends the user's sessions.
      if (await this.sessions.hold(tx, previous.id)) {
        return { kind: 'signed in', session: undefined, next: 'login' };
      }
    }
    const session = await this.sessions.open(
      tx,
      user
        ? { level: 'bootstrap', userId: user.id }
        : { level: 'bootstrap', pendingIdentity: identity },
      origin,
    );
    const hasKey = user !== undefined && (await this.users.hasKey(tx, user.id));
    return { kind: 'signed in', session, next: hasKey ? 'login' : 'enroll' };
  }
}
