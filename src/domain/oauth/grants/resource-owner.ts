/**
 * The resource owner of a grant (RFC 6749 §1.1): the user, and the proof of the user's session.
 * Tokens carry these facts.
 */
export interface ResourceOwner {
  readonly userId: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly sessionId: string;
  /**
   * True when a security key made an assertion in the session. Only the synthetic session of
   * certification test mode has none.
   */
  readonly hardwareVerified: boolean;
  /** The security key that made the last assertion; null for a synthetic session. */
  readonly authenticatorId: string | null;
  readonly hardwareAaguid: string | null;
  readonly authTime: Date;
  readonly amr: readonly string[];
  readonly acr: string | null;
  /** The end of the session, and of all that depends on it. */
  readonly expiresAt: Date;
  /**
   * The id of the session for clients (OpenID Connect Back-Channel Logout §2.1). It is null for a
   * session of before 0.14.0 until the migration reaches it.
   */
  readonly sid: string | null;
}

/** The names of a user, and the time when the account last changed. */
export interface UserProfile {
  readonly givenName: string | null;
  readonly familyName: string | null;
  /** The userName of a user that SCIM manages, otherwise the e-mail address. */
  readonly userName: string | null;
  readonly updatedAt: Date;
}
