import type { UnreadNotice } from '#domain/audit/notices/account-notices.repository.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import type { AccessToken } from './access-token.js';

/**
 * The name of the assurance level AAL3 (NIST SP 800-63B), as tokens state it. A login has this
 * level if the key verified its user.
 */
export const AAL3 = 'urn:nist:authentication:assurance-level:aal3';

/** The most hours for which a session that a device code opened lasts. */
const DEVICE_HOURS = 1;

/**
 * Returns the hours that a new session lasts: the setting SVC_SESSION_HOURS, but at most
 * {@link DEVICE_HOURS} for a session that an approved device code opens.
 */
export function sessionLifetime(settingHours: number, isOfDevice: boolean): number {
  return isOfDevice ? Math.min(settingHours, DEVICE_HOURS) : settingHours;
}

/**
 * The authentication methods that a login proved (RFC 8176), and the assurance level that follows
 * from them.
 */
export interface Assurance {
  readonly amr: readonly string[];
  readonly acr: string | null;
}

/**
 * Returns what a signature of a security key proves. It is level AAL3 if the key verified its user,
 * and no level if the user only touched the key.
 */
export function assuranceOf(userVerified: boolean): Assurance {
  return userVerified
    ? { amr: ['hwk', 'pin', 'user'], acr: AAL3 }
    : { amr: ['hwk', 'user'], acr: null };
}

/** The IP address and the browser from which a session was opened, as far as they are known. */
export interface SessionOrigin {
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
}

/** The user of a session, read in the same statement as the session. */
export interface SessionUser {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  /** True for an active admin whose e-mail address is in a domain that the organization owns. */
  readonly isOrgAdmin: boolean;
}

interface SessionRow {
  readonly id: string;
  readonly expiresAt: Date;
}

/**
 * A session after a sign-in at an identity provider. It opens pages, and the user may enroll a
 * first key.
 */
export interface BootstrapSession extends SessionRow {
  readonly level: 'bootstrap';
  readonly user: SessionUser;
  readonly pendingIdentity: null;
  /** True if the user has a security key, so that the next step is a login with the key. */
  readonly enrolled: boolean;
}

/**
 * A session after a sign-in at an identity provider by a person who is no user yet. The transaction
 * that enrolls the key creates the user.
 */
export interface PendingSession extends SessionRow {
  readonly level: 'bootstrap';
  readonly user: null;
  readonly pendingIdentity: UpstreamIdentity;
  readonly enrolled: false;
}

/**
 * A session after a login with a security key. Credentials may be issued only in such a session.
 */
export interface VerifiedSession extends SessionRow, Assurance {
  readonly level: 'verified';
  readonly user: SessionUser;
  readonly pendingIdentity: null;
  readonly enrolled: true;
  readonly authenticatorId: string;
  readonly hardwareAaguid: string | null;
  readonly authTime: Date;
  /**
   * True if an approved device code opened the session. The key was touched in a browser, and the
   * device may belong to an attacker. So the session never satisfies a demand for a touch.
   */
  readonly isOfDevice: boolean;
  /**
   * The OAuth access token by which the request found the session; null if it was the own token of
   * the session.
   */
  readonly accessToken: AccessToken | null;
  /** The newest notice about the account that the user has not read; null if there is none. */
  readonly unreadNotice: UnreadNotice | null;
}

/** A session that had not ended when it was read. */
export type LiveSession = BootstrapSession | PendingSession | VerifiedSession;

/** A session as its user sees it in the list of sessions. */
export interface OwnSession {
  readonly id: string;
  /** True if the user logged in with a security key in the session. */
  readonly verified: boolean;
  /**
   * The client to which the session belongs alone, such as the command line; null for a browser
   * session.
   */
  readonly client: { readonly id: string; readonly name: string | null } | null;
  /**
   * The IP address from which the session was opened; null for a session from before this column
   * existed.
   */
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}
