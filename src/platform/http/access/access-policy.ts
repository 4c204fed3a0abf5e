import type { AuthRule } from '#platform/http/routing/route-policy.js';
import type { originOf } from '#platform/http/request/client-origin.js';

/** An access token as a request presented it, and what came with it to prove whose it is. */
export interface PresentedToken {
  readonly scheme: 'Bearer' | 'DPoP' | 'cookie';
  readonly token: string;
  /** Every DPoP header of the request (RFC 9449 §4.3 wants one). */
  readonly proofs: readonly string[];
  readonly method: string;
  /** The path of the request as it was written, without its query. */
  readonly path: string;
  /** SHA-256, base64url, of the client certificate that the TLS layer saw (RFC 8705 §3.1). */
  readonly certificate: string | undefined;
}

/** The caller of a request, admitted or refused, as the log names it. */
export interface CallerFacts {
  readonly userId?: string | undefined;
  readonly orgId?: string | undefined;
  /** The OAuth client whose token the request presented. */
  readonly clientId?: string | undefined;
}

/** The person at a browser, as the header of a page shows them. */
export interface Visitor {
  readonly email: string;
  readonly name: string | null;
  /** Logged in with a security key, and not only signed in upstream. */
  readonly verified: boolean;
}

/** The request that a session is judged for, as a refusal is recorded. */
export interface AskedRequest {
  readonly scheme: PresentedToken['scheme'];
  readonly method: string;
  readonly path: string;
  /** Where it came from, as audit rows keep it. */
  readonly origin: () => ReturnType<typeof originOf>;
}

/**
 * Decides who may come in: implemented where sessions are known, called by the guard.
 *
 * @typeParam Session what a route's handler gets as its caller
 */
export abstract class AccessPolicy<Session = unknown> {
  /**
   * Looks the session of a request up.
   *
   * @param presented the token of the request, if it carries one
   * @returns the session, or undefined where none was presented and none is required
   * @throws DomainError unauthenticated, or why the token is not accepted
   */
  abstract find(
    presented: PresentedToken | undefined,
    requirement: AuthRule,
  ): Promise<Session | undefined>;

  /**
   * Judges whether a session that was found is enough.
   *
   * @throws DomainError why it is not
   */
  abstract judge(session: Session, requirement: AuthRule, asked: AskedRequest): Promise<void>;

  /** Names the caller of a session for the log. */
  abstract factsOf(session: Session): CallerFacts;

  /** Names the person of an admitted session for the header of a page; undefined where it is no person's. */
  abstract visitorOf(session: Session): Visitor | undefined;
}
