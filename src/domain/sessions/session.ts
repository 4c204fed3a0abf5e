import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import type { AccessToken } from './access-token.js';

/** NIST SP 800-63B AAL3: what a key with user verification gives. */
export const AAL3 = 'urn:nist:authentication:assurance-level:aal3';

/** What a ceremony really proved (RFC 8176 method references). */
export interface Assurance {
  readonly amr: readonly string[];
  readonly acr: string | null;
}

/** The assurance of an assertion: with user verification AAL3, with presence alone no claim to it. */
export function assuranceOf(userVerified: boolean): Assurance {
  return userVerified
    ? { amr: ['hwk', 'pin', 'user'], acr: AAL3 }
    : { amr: ['hwk', 'user'], acr: null };
}

/** Where a session was opened from, as far as the service saw. */
export interface SessionOrigin {
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
}

/** The person a session belongs to, as of this look-up. */
export interface SessionUser {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  /** An acting admin: active, with an address in a domain that the organization owns. */
  readonly isOrgAdmin: boolean;
}

interface SessionRow {
  readonly id: string;
  readonly expiresAt: Date;
}

/** Signed in upstream, and a user already. Sees pages and may enroll a first key. */
export interface BootstrapSession extends SessionRow {
  readonly level: 'bootstrap';
  readonly user: SessionUser;
  readonly pendingIdentity: null;
  /** Whether the user has a key, and so must log in with it. */
  readonly enrolled: boolean;
}

/** Signed in upstream, nobody yet: the user is made in the transaction that enrolls the key. */
export interface PendingSession extends SessionRow {
  readonly level: 'bootstrap';
  readonly user: null;
  readonly pendingIdentity: UpstreamIdentity;
  readonly enrolled: false;
}

/** A security key asserted: this session may be issued credentials. */
export interface VerifiedSession extends SessionRow, Assurance {
  readonly level: 'verified';
  readonly user: SessionUser;
  readonly pendingIdentity: null;
  readonly enrolled: true;
  readonly authenticatorId: string;
  readonly hardwareAaguid: string | null;
  readonly authTime: Date;
  /** The OAuth access token by which it was found; null when it was the session's own token. */
  readonly accessToken: AccessToken | null;
}

/** A session that is alive at the moment it was looked up. */
export type LiveSession = BootstrapSession | PendingSession | VerifiedSession;
