/** The person behind a grant, and what their session proved: what tokens say of them. */
export interface ResourceOwner {
  readonly userId: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly sessionId: string;
  /** A security key asserted; false for the synthetic session of certification test mode alone. */
  readonly hardwareVerified: boolean;
  /** The key that asserted; null where none did. */
  readonly authenticatorId: string | null;
  readonly hardwareAaguid: string | null;
  readonly authTime: Date;
  readonly amr: readonly string[];
  readonly acr: string | null;
  /** When the session ends, and all that hangs on it. */
  readonly expiresAt: Date;
}
