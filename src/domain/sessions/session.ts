import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import type { AccessToken } from './access-token.js';

/** The assurance level of a key with user verification (NIST SP 800-63B, AAL3). */
export const AAL3 = 'urn:nist:authentication:assurance-level:aal3';

/** The most hours that the session of a device lasts. */
const DEVICE_HOURS = 1;

/**
 * Returns the hours that a new session lasts: the setting SVC_SESSION_HOURS, but at most
 * {@link DEVICE_HOURS} for a session that an approved device code opens.
 */
export function sessionLifetime(settingHours: number, isOfDevice: boolean): number {
  return isOfDevice ? Math.min(settingHours, DEVICE_HOURS) : settingHours;
}

/** The authentication methods that a ceremony proved (RFC 8176), and the assurance level. */
export interface Assurance {
  readonly amr: readonly string[];
  readonly acr: string | null;
}

/**
 * Returns the assurance of an assertion: AAL3 with user verification, no level with user presence
 * alone.
 */
export function assuranceOf(userVerified: boolean): Assurance {
  return userVerified
    ? { amr: ['hwk', 'pin', 'user'], acr: AAL3 }
    : { amr: ['hwk', 'user'], acr: null };
}

/** The network address and browser that opened a session, as far as they are known. */
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
  /** True for an acting admin: active, with an address in a domain that the organization owns. */
  readonly isOrgAdmin: boolean;
}

interface SessionRow {
  readonly id: string;
  readonly expiresAt: Date;
}

/**
 * A session after the upstream sign-in of a user. It opens pages, and the user may enroll a first
 * key.
 */
export interface BootstrapSession extends SessionRow {
  readonly level: 'bootstrap';
  readonly user: SessionUser;
  readonly pendingIdentity: null;
  /** True when the user has a key, and therefore must log in with the key. */
  readonly enrolled: boolean;
}

/**
 * A session after an upstream sign-in without a user. The transaction that enrolls the key creates
 * the user.
 */
export interface PendingSession extends SessionRow {
  readonly level: 'bootstrap';
  readonly user: null;
  readonly pendingIdentity: UpstreamIdentity;
  readonly enrolled: false;
}

/** A session after an assertion of a security key. Credentials may be issued in it. */
export interface VerifiedSession extends SessionRow, Assurance {
  readonly level: 'verified';
  readonly user: SessionUser;
  readonly pendingIdentity: null;
  readonly enrolled: true;
  readonly authenticatorId: string;
  readonly hardwareAaguid: string | null;
  readonly authTime: Date;
  /**
   * True when an approved device code opened the session. The touch for it was made in a browser,
   * and the device may belong to a stranger. So the session never satisfies a demand for a touch.
   */
  readonly isOfDevice: boolean;
  /**
   * The OAuth access token that found the session; null when the own token of the session found it.
   */
  readonly accessToken: AccessToken | null;
}

/** A session that was alive when it was read. */
export type LiveSession = BootstrapSession | PendingSession | VerifiedSession;

/** A session as its user sees it in the list of sessions. */
export interface OwnSession {
  readonly id: string;
  /** True when the user proved a security key in the session. */
  readonly verified: boolean;
  /** The client that has the session for itself; null for a session of a browser. */
  readonly client: { readonly id: string; readonly name: string | null } | null;
  /** The address that opened the session; null for a session that is older than this column. */
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}
