/**
 * The resource owner of a grant (RFC 6749 §1.1): the user, and what the user's session proves.
 * Tokens contain these facts.
 */
export interface ResourceOwner {
  readonly userId: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly sessionId: string;
  /**
   * True if a security key made an assertion in the session. Only the session of certification test
   * mode has none.
   */
  readonly hardwareVerified: boolean;
  /**
   * The id of the security key that made the last assertion; null for a session of certification
   * test mode.
   */
  readonly authenticatorId: string | null;
  readonly hardwareAaguid: string | null;
  readonly authTime: Date;
  readonly amr: readonly string[];
  readonly acr: string | null;
  /** The end of the session, with which everything that depends on it ends. */
  readonly expiresAt: Date;
  /**
   * The id of the session as clients see it (OpenID Connect Back-Channel Logout §2.1). Null for a
   * session from before version 0.14.0, until the migration has reached it.
   */
  readonly sid: string | null;
}

/** The names of a user, and the time at which the account last changed. */
export interface UserProfile {
  readonly givenName: string | null;
  readonly familyName: string | null;
  /** The userName of a user that SCIM manages; otherwise the e-mail address. */
  readonly userName: string | null;
  readonly updatedAt: Date;
}
