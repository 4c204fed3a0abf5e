import type { originOf } from '#platform/http/request/client-origin.js';
import type { AuthRule } from '#platform/http/routing/route-policy.js';

/**
 * An access token of a request, and the proofs that came with it. By a proof, the sender shows that
 * the token is not stolen.
 */
export interface PresentedToken {
  readonly scheme: 'Bearer' | 'DPoP' | 'cookie';
  readonly token: string;
  /** Every DPoP header of the request. RFC 9449 §4.3 allows exactly one. */
  readonly proofs: readonly string[];
  readonly method: string;
  /** The path of the request as the client wrote it, without its query. */
  readonly path: string;
  /**
   * SHA-256 of the client certificate of the TLS connection in base64url (RFC 8705 §3.1); undefined
   * without a certificate.
   */
  readonly certificate: string | undefined;
  /** The IP address of the client; undefined after the client has disconnected. */
  readonly address: string | undefined;
}

/** The facts about the caller of a request that the log shows, even if the request was refused. */
export interface CallerFacts {
  readonly userId?: string | undefined;
  readonly orgId?: string | undefined;
  /** The OAuth client whose token the request presented. */
  readonly clientId?: string | undefined;
}

/** The logged-in user of a browser, as the header of a page shows the user. */
export interface Visitor {
  readonly email: string;
  readonly name: string | null;
  /** True if the user logged in with a security key, and not only with the identity provider. */
  readonly verified: boolean;
  /** True if the user is an admin of an organization and has logged in with a security key. */
  readonly isAdmin: boolean;
}

/** The parts of a request by which its session is checked and a refusal is recorded. */
export interface VerifiedRequest {
  readonly scheme: PresentedToken['scheme'];
  readonly method: string;
  readonly path: string;
  /**
   * The id of the session for which the sending page was rendered, from the request header
   * `svc-session`; undefined without the header. If it is not the id of the current session,
   * another login took place in this browser since.
   */
  readonly pageSession: string | undefined;
  /**
   * Returns the id of the request, the client's IP address and the user agent, for an audit row.
   */
  readonly origin: () => ReturnType<typeof originOf>;
}

/**
 * A look-up of a request's caller that began before the rate limit was decided. The request then
 * waits for both answers of the database at the same time.
 */
export interface BegunLookUp {
  /**
   * The token that is looked up. The implementation of {@link AccessPolicy} adds the result in
   * fields of its own.
   */
  readonly token: string;
}

/**
 * The caller of a request as this process remembers it from an earlier request with the same token.
 * The caller may have ended since. So nothing may be sent or written for it before a statement has
 * found the caller again.
 */
export interface RememberedCaller<Session = unknown> {
  readonly session: Session;
}

/**
 * Decides which callers a route admits. `domain/sessions` implements it, and the route guard calls
 * it.
 *
 * @typeParam Session the type of callers that a handler gets by `@Caller()`
 */
export abstract class AccessPolicy<Session = unknown> {
  /**
   * Begins to look up the caller of a request before its rate limit is decided. The look-up changes
   * nothing, because the request may still be refused.
   *
   * @returns undefined if nothing was begun, so that {@link find} does the whole look-up
   */
  abstract begin(presented: PresentedToken, rule: AuthRule): BegunLookUp | undefined;

  /**
   * Looks up the session of a request.
   *
   * @param presented the token of the request, if it carries one
   * @param begun the look-up of the same token, if it began already
   * @param remembered the caller by {@link recall}, if a statement has already tried to confirm it
   * @returns the session; undefined if the request has no token and the rule requires none
   * @throws DomainError unauthenticated, or the reason why the token is not accepted
   */
  abstract find(
    presented: PresentedToken | undefined,
    rule: AuthRule,
    begun?: BegunLookUp,
    remembered?: RememberedCaller,
  ): Promise<Session | undefined>;

  /**
   * Recalls the caller of a request from an earlier request with the same token, without the
   * database. The remembered session meets the rule of the route, and the proofs of the request are
   * verified, except that they may have been used before.
   *
   * @returns undefined if the process does not remember such a caller, or if it would be refused,
   *   so that {@link find} and {@link verify} decide
   */
  abstract recall(
    presented: PresentedToken,
    rule: AuthRule,
    request: VerifiedRequest,
  ): Promise<RememberedCaller<Session> | undefined>;

  /**
   * Verifies that a session meets the rule of a route.
   *
   * @throws DomainError the reason why it does not meet the rule
   */
  abstract verify(session: Session, rule: AuthRule, request: VerifiedRequest): Promise<void>;

  /** Returns headers that every response to a caller has in addition to those of its route. */
  abstract headersFor(session: Session): Readonly<Record<string, string>>;

  /** Returns the facts about the caller that the log shows. */
  abstract factsOf(session: Session): CallerFacts;

  /**
   * Returns the user of a session for the header of a page; undefined for a session without a user.
   */
  abstract visitorOf(session: Session): Visitor | undefined;
}
