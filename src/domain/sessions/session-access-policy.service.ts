import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { ScimTokensRepository } from '#domain/scim-tokens/scim-tokens.repository.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  AccessPolicy,
  type AskedRequest,
  type CallerFacts,
  type PresentedToken,
  type Visitor,
} from '#platform/http/access/access-policy.js';
import type { AuthRule } from '#platform/http/routing/route-policy.js';
import { AccessTokenRule, challengeOf, refusedToken } from './access-token-rule.service.js';
import { ADMIN_SCOPE } from './access-token.js';
import { assertTouchedWithin } from './recent-touch.js';
import type { LiveSession, SessionUser } from './session.js';
import { Sessions } from './sessions.service.js';

/** Seconds between two denials of one user that are on record: who asks in a loop does not fill the log. */
const DENIALS_ON_RECORD = 60;

/** Characters of a refused path that are kept. */
const LONGEST_PATH = 256;

/** The identity provider of an organization, by its SCIM token. */
export interface Provisioner {
  readonly tokenId: string;
  readonly orgId: string;
}

/**
 * Who may come in, by the live session row of the presented token: the session's own, which holds whatever its owner may, or
 * an access token of our command-line client.
 */
@Injectable()
export class SessionAccessPolicy extends AccessPolicy<LiveSession | Provisioner> {
  constructor(
    private readonly sessions: Sessions,
    private readonly accessTokens: AccessTokenRule,
    private readonly scimTokens: ScimTokensRepository,
    private readonly manager: EntityManager,
    private readonly audit: AuditLog,
  ) {
    super();
  }

  override async find(
    presented: PresentedToken | undefined,
    requirement: AuthRule,
  ): Promise<LiveSession | Provisioner | undefined> {
    if (requirement.session === 'provisioner') return this.#provisioner(presented);
    if (presented === undefined) return nobody(requirement, 'Sign in first.');
    const session =
      presented.scheme === 'cookie'
        ? await this.sessions.find(presented.token)
        : await this.#ofHeader(presented.scheme, presented, requirement.scope);
    // A stale cookie is as good as none; a token in a header was meant, and is answered.
    return session ?? nobody(requirement, 'The session is unknown or has ended.');
  }

  /**
   * @throws DomainError hardware_required, admin_required, insufficient_user_authentication. A user who asks for what is an
   *   admin's and may not is on record
   */
  override async judge(
    session: LiveSession | Provisioner,
    requirement: AuthRule,
    asked: AskedRequest,
  ): Promise<void> {
    if (!('level' in session)) return;
    try {
      assertMay(session, requirement, asked.scheme);
    } catch (error) {
      const { user } = session;
      const isDenied = error instanceof DomainError && error.status === 403;
      if (isDenied && user && requirement.scope === ADMIN_SCOPE) {
        await this.#recordDenial(user, error, asked);
      }
      throw error;
    }
  }

  async #recordDenial(
    user: SessionUser,
    { code }: DomainError,
    asked: AskedRequest,
  ): Promise<void> {
    const { method, path, origin } = asked;
    const event = {
      type: 'admin_access_refused',
      actorId: user.id,
      subjectId: user.id,
      orgId: user.orgId,
      origin: origin(),
      details: { code, method, path: path.slice(0, LONGEST_PATH) },
    } as const;
    await this.audit.record(this.manager, event, { atMostEvery: DENIALS_ON_RECORD });
  }

  override factsOf(session: LiveSession | Provisioner): CallerFacts {
    if (!('level' in session)) return { orgId: session.orgId };
    const { user } = session;
    const accessToken = session.level === 'verified' ? session.accessToken : null;
    return { userId: user?.id, orgId: user?.orgId ?? undefined, clientId: accessToken?.clientId };
  }

  override visitorOf(session: LiveSession | Provisioner): Visitor | undefined {
    if (!('level' in session)) return undefined;
    const { email, name } = session.user ?? session.pendingIdentity;
    return { email: email ?? '', name, verified: session.level === 'verified' };
  }

  /** @throws DomainError unauthenticated: neither a cookie nor an access token of a person provisions anybody */
  async #provisioner(presented: PresentedToken | undefined): Promise<Provisioner> {
    const token = presented?.scheme === 'Bearer' ? presented.token : undefined;
    const found =
      token !== undefined &&
      (await this.scimTokens.authenticate(this.manager, hashOpaqueToken(token)));
    if (!found) throw refusedToken('Bearer', 'The SCIM token is invalid, revoked or has expired.');
    return { tokenId: found.id, orgId: found.orgId };
  }

  /** @throws DomainError whatever is wrong with a token in the Authorization header */
  async #ofHeader(
    scheme: 'Bearer' | 'DPoP',
    presented: PresentedToken,
    scope: string | undefined,
  ): Promise<LiveSession> {
    const session = await this.sessions.findByAnyToken(presented.token);
    if (!session) throw refusedToken(scheme, 'The access token is invalid or has expired.');
    const accessToken = session.level === 'verified' ? session.accessToken : null;
    if (accessToken) {
      await this.accessTokens.check(presented, accessToken, scope);
    } else if (scheme === 'DPoP') {
      // Bound to nothing, it proves nothing (RFC 9449 §7.1).
      throw refusedToken('Bearer', 'This access token must come under the Bearer scheme.');
    }
    return session;
  }
}

function nobody({ session }: AuthRule, detail: string): undefined {
  if (session !== 'optional') throw new DomainError('unauthenticated', detail);
}

/** @throws DomainError hardware_required, admin_required, insufficient_user_authentication, in this order */
function assertMay(
  session: LiveSession,
  { session: level, scope, touchedWithinSeconds }: AuthRule,
  scheme: PresentedToken['scheme'],
): void {
  if (level === 'verified' && session.level !== 'verified') throw hardwareRequired();
  if (scope === ADMIN_SCOPE && !(session.user?.isOrgAdmin && session.user.orgId !== null)) {
    throw new DomainError('admin_required', 'This is for the admins of an organization.');
  }
  if (touchedWithinSeconds === undefined) return;
  if (session.level !== 'verified') throw hardwareRequired();
  const challenge = challengeOf(scheme === 'DPoP' ? 'DPoP' : 'Bearer');
  assertTouchedWithin(touchedWithinSeconds, session.authTime, challenge);
}

function hardwareRequired(): DomainError {
  return new DomainError('hardware_required', 'Log in with your security key first.');
}
