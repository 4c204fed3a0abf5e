import type { originOf } from '#platform/http/request/client-origin.js';
import type { AuthRule } from '#platform/http/routing/route-policy.js';

/** An access token of a request, and the proofs that came with it. */
export interface PresentedToken {
  readonly scheme: 'Bearer' | 'DPoP' | 'cookie';
  readonly token: string;
  /** Every DPoP header of the request (RFC 9449 §4.3 wants exactly one). */
  readonly proofs: readonly string[];
  readonly method: string;
  /** The path of the request as the client wrote it, without its query. */
  readonly path: string;
  /** SHA-256, base64url, of the client certificate of the TLS connection (RFC 8705 §3.1). */
  readonly certificate: string | undefined;
}

/** The caller of a request, admitted or refused, as the log names it. */
export interface CallerFacts {
  readonly userId?: string | undefined;
  readonly orgId?: string | undefined;
  /** The OAuth client whose token the request presented. */
  readonly clientId?: string | undefined;
}

/** The user at a browser, as the header of a page shows them. */
export interface Visitor {
  readonly email: string;
  readonly name: string | null;
  /** True if the user logged in with a security key, and not only with the identity provider. */
  readonly verified: boolean;
  /** True for an admin of an organization in a verified session. */
  readonly isAdmin: boolean;
}

/** The request whose session is verified, as the record of a denial needs it. */
export interface VerifiedRequest {
  readonly scheme: PresentedToken['scheme'];
  readonly method: string;
  readonly path: string;
  /**
   * The session of the page that sends the request, as its header `svc-session` states it;
   * undefined without the header.
   */
  readonly pageSession: string | undefined;
  /** The client's address and program, as audit rows keep them. */
  readonly origin: () => ReturnType<typeof originOf>;
}

/**
 * Decides which callers a route admits. The domain of sessions implements it, and the route guard
 * calls it.
 *
 * @typeParam Session the type of callers that a handler gets by `@Caller()`
 */
export abstract class AccessPolicy<Session = unknown> {
  /**
   * Looks up the session of a request.
   *
   * @param presented the token of the request, if it carries one
   * @returns the session, or undefined if the request carries none and the rule requires none
   * @throws DomainError unauthenticated, or the reason why the token is not accepted
   */
  abstract find(
    presented: PresentedToken | undefined,
    rule: AuthRule,
  ): Promise<Session | undefined>;

  /**
   * Verifies that a session meets the rule of a route.
   *
   * @throws DomainError the reason why it does not
   */
  abstract verify(session: Session, rule: AuthRule, request: VerifiedRequest): Promise<void>;

  /** Names the caller of a session for the log. */
  abstract factsOf(session: Session): CallerFacts;

  /**
   * Names the user of a session for the header of a page; undefined for a session without a user.
   */
  abstract visitorOf(session: Session): Visitor | undefined;
}
