import { Inject, Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { Program } from '#domain/directory/api-tokens/api-tokens.repository.js';
import {
  authenticateScimToken,
  findScimToken,
  type ValidScimToken,
} from '#domain/directory/scim-tokens/scim-tokens.repository.js';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  AccessPolicy,
  type BegunLookUp,
  type RememberedCaller,
  type VerifiedRequest,
  type CallerFacts,
  type PresentedToken,
  type Visitor,
} from '#platform/http/access/access-policy.js';
import type { AuthRule } from '#platform/http/routing/route-policy.js';
import { VERSION } from '#platform/text/service-version.js';
import { RememberedTokens } from './remembered/remembered-tokens.js';
import { clientItself, type ClientItself } from './client-itself.js';
import { programItself } from './program-itself.js';
import {
  ADMIN_SCOPE,
  assertOpens,
  challengeOf,
  CLI_CLIENT_ID,
  refusedScimToken,
  refusedToken,
} from './access-token.js';
import type { LiveSession, SessionUser } from './session.js';
import { kindOfToken, Sessions } from './sessions.service.js';
import { spendDpopProof, verifiedProof } from './dpop/spend-dpop-proof.js';
import type { TokenCheck } from './remembered/token-check.repository.js';

/**
 * The seconds after a recorded denial in which further denials of the same user are not recorded.
 * Otherwise a client in a loop would fill the audit log.
 */
const DENIALS_ON_RECORD = 60;

/**
 * The response header that names the newest unread notice about the account. Only the command-line
 * client gets it.
 */
const NOTICE_HEADER = 'svc-notice';

/** The response header by which the command-line client learns the version of the service. */
const OWN_VERSION = { 'svc-version': VERSION } as const;

const NO_HEADERS: Readonly<Record<string, string>> = {};

/** The most characters of a refused path that the audit log records. */
const LONGEST_PATH = 256;

/** The identity provider of an organization. The SCIM token of the request belongs to it. */
export interface Provisioner {
  readonly tokenId: string;
  readonly orgId: string;
  /** The time of {@link Clock.monotonic} at which the token was found, or recalled for a read. */
  readonly foundAt: number;
}

/** A caller that may use a route: a user, an identity provider, an application or a program. */
type Caller = LiveSession | Provisioner | ClientItself | Program;

/**
 * A look-up of a session or a SCIM token. It began before the rate limit was decided, so that the
 * request waits for both at once.
 */
interface Begun extends BegunLookUp {
  readonly session?: Promise<LiveSession | undefined>;
  readonly scimToken?: ReturnType<typeof findScimToken>;
}

/**
 * A caller that this process remembers, with what a statement must check to confirm it. The
 * statement that has spent the DPoP proof of the request notes that in `proofIsSpent`.
 */
export interface RememberedSession extends RememberedCaller<LiveSession | Provisioner> {
  readonly token?: TokenCheck;
  proofIsSpent?: boolean;
}

/**
 * Decides if a request may use a route, by the session to which its token belongs. The own token of
 * a session has all permissions of the user. An access token of the command-line client has the
 * permissions of its scope. A SCIM token identifies an identity provider, and an API token a
 * program. A token of the client credentials grant opens the stream of security events of its
 * client.
 */
@Injectable()
export class SessionAccessPolicy extends AccessPolicy<Caller> {
  readonly #scimTokens = new RememberedTokens<ValidScimToken>();

  constructor(
    @Inject(CONFIG) readonly config: Pick<Config, 'http'>,
    private readonly sessions: Sessions,
    readonly clock: Clock,
    readonly batchedQueries: BatchedQueries,
    private readonly manager: EntityManager,
    private readonly audit: AuditLog,
  ) {
    super();
  }

  /**
   * Begins the look-up of a session or a SCIM token, before the rate limit of the request is
   * decided. The look-ups of programs and applications wait for the rate limit. That of a program
   * records the use of the API token, and that of an application spends the DPoP proof of the
   * request. For these the result is undefined.
   */
  override begin({ scheme, token }: PresentedToken, { session }: AuthRule): Begun | undefined {
    if (session === 'none' || session === 'program' || session === 'client') return undefined;
    if (session !== 'provisioner') {
      return { token, session: watched(this.sessions.findByAnyToken(token)) };
    }
    if (scheme !== 'Bearer') return undefined;
    return { token, scimToken: watched(findScimToken(this.manager, hashOpaqueToken(token))) };
  }

  override async find(
    presented: PresentedToken | undefined,
    requirement: AuthRule,
    before?: Begun,
    remembered?: RememberedSession,
  ): Promise<Caller | undefined> {
    const ahead = before?.token === presented?.token ? before : undefined;
    if (requirement.session === 'provisioner') return this.#provisioner(presented, ahead);
    if (requirement.session === 'program') {
      return programItself(this.manager, presented, requirement.scope);
    }
    if (requirement.session === 'client') {
      return clientItself(this, this.manager, presented, requirement.scope);
    }
    if (presented === undefined) return withoutSession(requirement, 'Sign in first.');
    const session =
      presented.scheme === 'cookie'
        ? await this.sessions.find(presented.token, ahead?.session)
        : await this.#ofHeader(presented.scheme, presented, requirement.scope, {
            session: ahead?.session,
            proofIsSpent: remembered?.proofIsSpent,
          });
    // If the session of a cookie has ended, the request counts as one without a cookie. A wrong
    // token in a header is an error, even if the route needs no session.
    return session ?? withoutSession(requirement, 'The session is unknown or has ended.');
  }

  override async recall(
    presented: PresentedToken,
    requirement: AuthRule,
    asked: VerifiedRequest,
  ): Promise<RememberedSession | undefined> {
    const { scheme } = presented;
    const hash = hashOpaqueToken(presented.token);
    if (requirement.session === 'provisioner' && scheme === 'Bearer') {
      const found = this.#scimTokens.get(hash);
      return found && { session: this.#provisionerOf(found) };
    }
    const session = statementChecks(requirement) ? this.sessions.recall(hash) : undefined;
    if (session?.level !== 'verified') return undefined;
    try {
      const { scope } = requirement;
      if (scheme === 'cookie' && session.accessToken) return undefined;
      if (scheme !== 'cookie') assertHeader(scheme, presented, session, scope);
      assertOwnPage(session, asked);
      this.#assertMay(session, requirement, scheme);
      const jkt = session.accessToken?.jkt ?? null;
      const proof = jkt === null ? undefined : await verifiedProof(this, presented, jkt);
      return { session, token: { kind: kindOfToken(session), hash, proof } };
    } catch {
      return undefined; // The look-up of the session finds the same fault, and refuses the request.
    }
  }

  /**
   * Checks that a session satisfies the access rule of a route. If a user is denied a route for
   * admins, the audit log records the denial, at most once in {@link DENIALS_ON_RECORD} seconds.
   *
   * @throws DomainError stale_page, hardware_required, admin_required,
   *   insufficient_user_authentication
   */
  override async verify(
    session: Caller,
    requirement: AuthRule,
    asked: VerifiedRequest,
  ): Promise<void> {
    if (!('level' in session)) return;
    assertOwnPage(session, asked);
    try {
      this.#assertMay(session, requirement, asked.scheme);
    } catch (error) {
      const { user } = session;
      const isDenied = error instanceof DomainError && error.status === 403;
      if (isDenied && user && requirement.scope === ADMIN_SCOPE) {
        await this.#recordDenial(user, error, asked);
      }
      throw error;
    }
  }

  /**
   * Checks the level of a session, the role of its user, and the age of the last touch of a
   * security key, in this order.
   *
   * @throws DomainError hardware_required, admin_required, insufficient_user_authentication
   */
  #assertMay(
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
    this.sessions.assertTouchedWithin(touchedWithinSeconds, session, challenge);
  }

  async #recordDenial(
    user: SessionUser,
    { code }: DomainError,
    asked: VerifiedRequest,
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

  /**
   * Returns the headers for the command-line client; empty for every other caller. An old client
   * learns from the version of the service that it is old, and can say so. The unread notice about
   * the account is a dictionary of RFC 9651. The client prints it, so that it also reaches a user
   * who opens no page.
   */
  override headersFor(session: Caller): Readonly<Record<string, string>> {
    if (!('level' in session) || session.level !== 'verified') return NO_HEADERS;
    const { accessToken, unreadNotice } = session;
    if (accessToken?.clientId !== CLI_CLIENT_ID) return NO_HEADERS;
    if (!unreadNotice) return OWN_VERSION;
    const notice = `type=${unreadNotice.type}, id="${unreadNotice.id}"`;
    return { ...OWN_VERSION, [NOTICE_HEADER]: notice };
  }

  override factsOf(session: Caller): CallerFacts {
    if ('clientId' in session) return { orgId: session.orgId, clientId: session.clientId };
    if (!('level' in session)) return { orgId: session.orgId };
    const { user } = session;
    const accessToken = session.level === 'verified' ? session.accessToken : null;
    return { userId: user?.id, orgId: user?.orgId ?? undefined, clientId: accessToken?.clientId };
  }

  override visitorOf(session: Caller): Visitor | undefined {
    if (!('level' in session)) return undefined;
    const { email, name } = session.user ?? session.pendingIdentity;
    const verified = session.level === 'verified';
    const isAdmin = verified && session.user.isOrgAdmin && session.user.orgId !== null;
    return { email: email ?? '', name, verified, isAdmin };
  }

  /**
   * Finds the identity provider to which a SCIM token belongs.
   *
   * @throws DomainError unauthenticated for a cookie, and for an access token of a user, because
   *   neither may provision users
   */
  async #provisioner(
    presented: PresentedToken | undefined,
    ahead: Begun | undefined,
  ): Promise<Provisioner> {
    if (presented === undefined || presented.scheme === 'cookie') {
      // A request without any token gets a challenge without an error code (RFC 6750 §3.1).
      throw new DomainError(
        'unauthenticated',
        'The Authorization header must carry a SCIM token: Bearer, and the token.',
      );
    }
    const { scheme, token } = presented;
    const hash = hashOpaqueToken(token);
    const found = scheme === 'Bearer' ? await this.#scimToken(hash, ahead) : undefined;
    this.#scimTokens.set(hash, found);
    if (!found) throw refusedScimToken();
    return this.#provisionerOf(found);
  }

  #provisionerOf({ id, orgId }: ValidScimToken): Provisioner {
    return { tokenId: id, orgId, foundAt: this.clock.monotonic() };
  }

  /**
   * Finds a valid SCIM token. The look-up before the rate limit changes nothing. If the time of the
   * last use must be recorded, a second look-up records it, because only now the limit has admitted
   * the request.
   */
  async #scimToken(hash: Buffer, ahead: Begun | undefined): Promise<ValidScimToken | undefined> {
    if (ahead?.scimToken) {
      const found = await ahead.scimToken;
      if (!found || found.isUseOnRecord) return found;
    }
    return authenticateScimToken(this.manager, hash);
  }

  /**
   * Finds the session that belongs to the token in the Authorization header, and checks that the
   * token opens the route.
   *
   * @throws DomainError unauthenticated, insufficient_scope or invalid_dpop_proof
   */
  async #ofHeader(
    scheme: 'Bearer' | 'DPoP',
    presented: PresentedToken,
    scope: string | undefined,
    before: {
      readonly session: Begun['session'] | undefined;
      readonly proofIsSpent: boolean | undefined;
    },
  ): Promise<LiveSession> {
    const session = await (before.session ?? this.sessions.findByAnyToken(presented.token));
    if (!session) throw refusedToken(scheme, 'The access token is invalid or has expired.');
    assertHeader(scheme, presented, session, scope);
    const jkt = session.level === 'verified' ? (session.accessToken?.jkt ?? null) : null;
    if (jkt !== null && before.proofIsSpent !== true) await spendDpopProof(this, presented, jkt);
    return session;
  }
}

/**
 * Returns true for a rule of which a statement can check all that may have changed: it finds the
 * token and the session again, but not the role of an admin nor the time of the last touch.
 */
function statementChecks({ session, scope, touchedWithinSeconds }: AuthRule): boolean {
  return session === 'verified' && scope !== ADMIN_SCOPE && touchedWithinSeconds === undefined;
}

/**
 * Checks that a token in the Authorization header opens a route. The caller must still check and
 * spend the DPoP proof.
 *
 * @throws DomainError unauthenticated or insufficient_scope
 */
function assertHeader(
  scheme: 'Bearer' | 'DPoP',
  presented: PresentedToken,
  session: LiveSession,
  scope: string | undefined,
): void {
  const accessToken = session.level === 'verified' ? session.accessToken : null;
  if (accessToken) assertOpens(presented, accessToken, scope);
  else if (scheme === 'DPoP') {
    // An access token that is bound to no DPoP key must not be sent under the DPoP scheme (RFC 9449
    // §7.1).
    throw refusedToken('Bearer', 'This access token must come under the Bearer scheme.');
  }
}

/**
 * Returns the same promise, but adds a handler for its rejection. The request awaits the promise
 * only after its rate limit is decided, or never. Node would end the process for a rejection that
 * has no handler.
 */
function watched<Found>(found: Promise<Found>): Promise<Found> {
  found.catch(() => undefined);
  return found;
}

/**
 * Refuses a request without a session. On a route on which the session is optional, it returns
 * undefined instead.
 *
 * @throws DomainError unauthenticated
 */
function withoutSession({ session }: AuthRule, detail: string): undefined {
  if (session !== 'optional') throw new DomainError('unauthenticated', detail);
}

/**
 * Refuses a write from a page that was made for another session of the same browser. Otherwise a
 * user could act as another user by mistake.
 *
 * @throws DomainError stale_page
 */
function assertOwnPage({ id }: LiveSession, { pageSession }: VerifiedRequest): void {
  if (pageSession === undefined || pageSession === id) return;
  throw new DomainError(
    'stale_page',
    'This page belongs to an earlier session. Reload it and try again.',
  );
}

function hardwareRequired(): DomainError {
  return new DomainError('hardware_required', 'Log in with your security key first.');
}
