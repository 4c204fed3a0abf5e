/**
 * The type of a logout token, which its header states (OpenID Connect Back-Channel Logout §2.4).
 */
export const LOGOUT_TOKEN_TYPE = 'logout+jwt';

/**
 * The seconds for which a logout token is valid (Back-Channel Logout §4 recommends two minutes).
 */
const LIFETIME = 120;

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** The facts from which a logout token is made. */
export interface LogoutFacts {
  readonly issuer: string;
  readonly clientId: string;
  readonly subject: string;
  /**
   * The id of the session that has ended; null if every session of the user at the client has
   * ended.
   */
  readonly sid: string | null;
  readonly jti: string;
  /** The time at which the token is sent, in seconds since 1970. */
  readonly issuedAt: number;
}

/**
 * Returns the claims of a logout token (Back-Channel Logout §2.4). The specification forbids the
 * claim `nonce` in a logout token, so that no client takes the token for an ID token.
 */
export function logoutClaims(facts: LogoutFacts): Record<string, unknown> {
  const { issuer, clientId, subject, sid, jti, issuedAt } = facts;
  return {
    iss: issuer,
    aud: clientId,
    sub: subject,
    ...(sid === null ? {} : { sid }),
    iat: issuedAt,
    exp: issuedAt + LIFETIME,
    jti,
    events: { [EVENT]: {} },
  };
}
