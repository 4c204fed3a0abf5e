import type { AuditOrigin } from '#domain/audit/audit-origin.js';

/**
 * A request that waits until a user logs in. It is an authorization request, named by the id of its
 * interaction, or the request of a device, named by its user code.
 */
export type PendingLogin = { readonly interaction: string } | { readonly userCode: string };

/** The session of the user whose login completes a waiting request. */
export interface LoggedIn {
  readonly token: string;
  readonly userId: string;
  readonly authTime: Date;
}

/** The application of an authorization request, as a page shows it to the user. */
export interface WaitingApplication {
  readonly name: string;
  /** The host to which the browser is redirected after the login. */
  readonly host: string;
  /**
   * True if the application registered itself (RFC 7591), so that no person has checked its name.
   */
  readonly isDynamic: boolean;
  /**
   * True if a user registered the application, and no admin of the organization has approved it for
   * the host, so that the page warns.
   */
  readonly isUnapproved: boolean;
  /** The URLs of the application's privacy policy and terms of service (RFC 7591 §2). */
  readonly policyUri: string | undefined;
  readonly termsUri: string | undefined;
}

/**
 * Finds the application of a request that waits for a login, for the login page. In certification
 * test mode, it also completes or denies these requests without a page for the user. The OAuth
 * feature implements this class. The methods `complete` and `deny` return the absolute URL to which
 * the browser is redirected. They throw DomainError `not_found` or `invalid_state` if the request
 * does not wait any more.
 */
export abstract class PendingLogins {
  /**
   * Finds the application of an interaction, and changes nothing. Returns undefined if the
   * interaction does not wait any more.
   */
  abstract applicationOf(interaction: string): Promise<WaitingApplication | undefined>;

  /** Completes a waiting request in the name of the user of a session, without a consent page. */
  abstract complete(pending: PendingLogin, session: LoggedIn, origin: AuditOrigin): Promise<string>;

  /** Denies a waiting request: the client receives `access_denied`. */
  abstract deny(pending: PendingLogin): Promise<string>;
}
