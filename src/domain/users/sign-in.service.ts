import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuthenticatorsRepository } from '#domain/authenticators/authenticators.repository.js';
import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ResolvePerson } from './resolve-person.service.js';

/** A bootstrap session, and whether its user has a key to log in with or must enroll one. */
export interface SignedIn {
  readonly session: OpenedSession;
  readonly next: 'enroll' | 'login';
}

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
   * Opens a bootstrap session for an upstream identity.
   *
   * @param replaces the id of the session the browser had until now: it ends
   * @throws DomainError sign_in_refused, after an audit row that says why
   */
  async signIn(
    identity: UpstreamIdentity,
    origin: AuditOrigin,
    replaces: string | undefined,
  ): Promise<SignedIn> {
    const outcome = await this.dataSource.transaction(async (tx) => {
      const person = await this.people.resolve(tx, identity, origin);
      if (person.kind === 'refused') {
        await this.audit.record(tx, {
          type: 'identity_bind_refused',
          actorId: null,
          subjectId: person.user?.id ?? null,
          orgId: person.user?.orgId ?? null,
          origin,
          details: { provider: identity.provider, email: identity.email, reason: person.reason },
        });
        return person;
      }
      const known = person.kind === 'known' ? person.user : undefined;
      const session = await this.sessions.open(
        tx,
        known
          ? { level: 'bootstrap', userId: known.id }
          : { level: 'bootstrap', pendingIdentity: identity },
      );
      const enrolled = known !== undefined && (await this.keys.hasAny(tx, known.id));
      const next = enrolled ? ('login' as const) : ('enroll' as const);
      return { kind: 'signed in' as const, session, next };
    });
    // Thrown outside the transaction, which keeps the audit row of the refusal.
    if (outcome.kind === 'refused') {
      const { reason, user } = outcome;
      this.#security.warn({ userId: user?.id, provider: identity.provider }, `refused: ${reason}`);
      throw new DomainError('sign_in_refused', reason);
    }
    // Not inside: it may be somebody else's row, and locking two people's is how deadlocks begin.
    if (replaces !== undefined) await this.sessions.end(this.dataSource.manager, replaces);
    return outcome;
  }
}
