/**
 * The resource owner of a grant (RFC 6749 §1.1): the user, and the facts that the user's session
 * proves. Tokens contain these facts.
 */
export interface ResourceOwner {
  readonly userId: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly sessionId: string;
  /**
   * True if a security key verified the user in the session. It is false only for the session of
   * certification test mode.
   */
  readonly hardwareVerified: boolean;
  /**
   * The id of the security key that opened the session; null for a session of certification test
   * mode. If the user later touches another key in the session, the id stays the same.
   */
  readonly authenticatorId: string | null;
  readonly hardwareAaguid: string | null;
  readonly authTime: Date;
  readonly amr: readonly string[];
  readonly acr: string | null;
  /** The time at which the session ends. Everything that depends on the session ends with it. */
  readonly expiresAt: Date;
  /**
   * The id of the session as clients see it (OpenID Connect Back-Channel Logout §2.1). It is null
   * only for an old session to which the migration has not yet given an id.
   */
  readonly sid: string | null;
}

/** The names of a user, and the time of the last change of the account. */
export interface UserProfile {
  readonly givenName: string | null;
  readonly familyName: string | null;
  /** The userName of a user that SCIM manages; otherwise the e-mail address. */
  readonly userName: string | null;
  readonly updatedAt: Date;
}
