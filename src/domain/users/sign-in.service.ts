import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuthenticatorsRepository } from '#domain/authenticators/authenticators.repository.js';
import type { ReturnedSignIn } from '#domain/identity-providers/identity-providers.service.js';
import { reportOf } from '#domain/identity-providers/sign-in-failure.js';
import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ResolvePerson, type Person } from './resolve-person.service.js';

/** The result of a sign-in: whether its user has a key to log in with or must enroll one. */
export interface SignedIn {
  /** A bootstrap session; undefined where the verified session that the browser has stays. */
  readonly session: OpenedSession | undefined;
  readonly next: 'enroll' | 'login';
}

type Refused = Extract<Person, { kind: 'refused' }>;

/** Signing in upstream: the first level of session, which sees pages and may enroll a first key. */
@Injectable()
export class SignIn {
  readonly #security = new Logger('security');

  constructor(
    private readonly dataSource: DataSource,
    private readonly people: ResolvePerson,
    private readonly keys: AuthenticatorsRepository,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Opens a bootstrap session for the person who comes back from a provider, and ends the session that the browser had. A
   * verified session of the same person stays instead. One of another person ends only where our own pages began the
   * sign-in: a page of another site cannot end it.
   *
   * @param previous the session the browser had until now
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable, after an audit row that says why
   */
  async signIn(
    returned: ReturnedSignIn,
    origin: AuditOrigin,
    previous: LiveSession | undefined,
  ): Promise<SignedIn> {
    const identity = await this.#identify(returned, origin);
    const outcome = await this.dataSource.transaction(async (tx) => {
      const unwanted = await this.#refusedSwitch(tx, returned, identity, previous);
      const person = unwanted ?? (await this.people.resolve(tx, identity, origin));
      if (person.kind !== 'refused') return this.#open(tx, person, identity, origin, previous);
      if (!unwanted) await this.#record(tx, 'identity_bind_refused', person, identity, origin);
      await this.#record(tx, 'upstream_login_refused', person, identity, origin);
      return person;
    });
    // Thrown outside the transaction, which keeps the audit rows of the refusal.
    if (outcome.kind === 'refused') {
      const { reason, user } = outcome;
      this.#security.warn({ userId: user?.id, provider: identity.provider }, `refused: ${reason}`);
      throw new DomainError('sign_in_refused', reason);
    }
    // Not inside: the row may be another user's, and a transaction that locks two users' rows is how deadlocks begin.
    if (outcome.session && previous) {
      await this.sessions.end(this.dataSource.manager, previous.id);
    }
    return outcome;
  }

  async #identify(returned: ReturnedSignIn, origin: AuditOrigin): Promise<UpstreamIdentity> {
    try {
      return await returned.identify();
    } catch (error) {
      if (error instanceof DomainError) {
        const { error: said, errorDescription, reason } = reportOf(error);
        await this.audit.record(this.dataSource.manager, {
          type: 'upstream_login_refused',
          actorId: null,
          subjectId: null,
          orgId: null,
          origin,
          details: {
            provider: returned.provider,
            code: error.code,
            reason: reason ?? error.detail,
            ...(said === undefined ? {} : { error: said }),
            ...(errorDescription === undefined ? {} : { error_description: errorDescription }),
          },
        });
      }
      throw error;
    }
  }

  /** Judged before anything is bound: a sign-in that another site began must change nothing for the person who is here. */
  async #refusedSwitch(
    tx: EntityManager,
    { crossSite }: ReturnedSignIn,
    identity: UpstreamIdentity,
    previous: LiveSession | undefined,
  ): Promise<Refused | undefined> {
    if (!crossSite || previous?.level !== 'verified') return undefined;
    const user = await this.people.bound(tx, identity);
    if (user?.id === previous.user.id) return undefined;
    return {
      kind: 'refused',
      reason: 'You are logged in as another person here. Log out first, then sign in.',
      orgId: user?.orgId ?? null,
      ...(user ? { user } : {}),
    };
  }

  #record(
    tx: EntityManager,
    type: 'identity_bind_refused' | 'upstream_login_refused',
    { user, orgId, reason }: Refused,
    { provider, email }: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<void> {
    const details = { provider, email, reason };
    const subjectId = user?.id ?? null;
    return this.audit.record(tx, { type, actorId: null, subjectId, orgId, origin, details });
  }

  async #open(
    tx: EntityManager,
    person: Exclude<Person, Refused>,
    identity: UpstreamIdentity,
    origin: AuditOrigin,
    previous: LiveSession | undefined,
  ): Promise<SignedIn & { readonly kind: 'signed in' }> {
    const known = person.kind === 'known' ? person.user : undefined;
    const userId = known?.id ?? null;
    const { provider, issuer, email } = identity;
    await this.audit.record(tx, {
      type: 'upstream_login',
      actorId: userId,
      subjectId: userId,
      orgId: person.kind === 'known' ? person.user.orgId : person.orgId,
      origin,
      details: { provider, issuer, email },
    });
    if (known && previous?.level === 'verified' && previous.user.id === known.id) {
      // A change of e-mail may have ended it a moment ago, in this transaction.
      if (await this.sessions.hold(tx, previous.id)) {
        return { kind: 'signed in', session: undefined, next: 'login' };
      }
    }
    const session = await this.sessions.open(
      tx,
      known
        ? { level: 'bootstrap', userId: known.id }
        : { level: 'bootstrap', pendingIdentity: identity },
      origin,
    );
    const enrolled = known !== undefined && (await this.keys.hasAny(tx, known.id));
    return { kind: 'signed in', session, next: enrolled ? 'login' : 'enroll' };
  }
}
