import type { AuditOrigin } from '#domain/audit/audit-origin.js';

/**
 * A request that waits for a login: an authorization request, by its interaction, or a device, by
 * its user code.
 */
export type PendingLogin = { readonly interaction: string } | { readonly userCode: string };

/** The session that completes a pending login. */
export interface LoggedIn {
  readonly token: string;
  readonly userId: string;
  readonly authTime: Date;
}

/** The application of an authorization request, as a page names it. */
export interface WaitingApplication {
  readonly name: string;
  /** The host that the user is sent on to. */
  readonly host: string;
  /** True when the application registered itself, so that its name was not checked. */
  readonly isDynamic: boolean;
  /**
   * True when a user registered the application, and no admin of the organization of the user has
   * approved it for the host.
   */
  readonly isUnapproved: boolean;
  /** The addresses of its privacy policy and of its terms of service (RFC 7591 §2). */
  readonly policyUri: string | undefined;
  readonly termsUri: string | undefined;
}

/**
 * Completes or denies pending logins without a page, for certification test mode. The OAuth feature
 * implements it. Each method returns the absolute address to which the browser is redirected. It
 * throws DomainError `not_found` or `invalid_state` if no login waits.
 */
export abstract class PendingLogins {
  /** Finds the application of an interaction. It leaves the pending login as it is. */
  abstract applicationOf(interaction: string): Promise<WaitingApplication | undefined>;

  /** Completes the login as the user of a session, without consent. */
  abstract complete(pending: PendingLogin, session: LoggedIn, origin: AuditOrigin): Promise<string>;

  /** Denies the login: the client receives `access_denied`. */
  abstract deny(pending: PendingLogin): Promise<string>;
}
