import type { AuditOrigin } from '#domain/audit/audit-origin.js';

/** What waits for somebody to log in: an authorization request by its interaction, or a device by its user code. */
export type PendingLogin = { readonly interaction: string } | { readonly userCode: string };

/** A session to end a login with: its token, whose it is, and since when. */
export interface LoggedIn {
  readonly token: string;
  readonly userId: string;
  readonly authTime: Date;
}

/** The application that an authorization request came from, as a page names it. */
export interface WaitingApplication {
  readonly name: string;
  /** The host that the user is sent on to. */
  readonly host: string;
  /** Whether it registered itself, so that nothing about it was checked. */
  readonly isDynamic: boolean;
}

/**
 * Ends what waits for a login without any page: certification test mode asks, and whoever knows what waits implements it.
 * Each method returns where the browser goes on, an absolute address, and throws DomainError not_found or invalid_state
 * where nothing waits.
 */
export abstract class PendingLogins {
  /** Names the application of an interaction; undefined where none waits, which ends nothing. */
  abstract applicationOf(interaction: string): Promise<WaitingApplication | undefined>;

  /** Goes on as the person of a session, who is asked nothing. */
  abstract complete(pending: PendingLogin, session: LoggedIn, origin: AuditOrigin): Promise<string>;

  /** The client is told `access_denied`. */
  abstract deny(pending: PendingLogin): Promise<string>;
}
