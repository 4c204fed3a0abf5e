import type { DeniedSession } from '#domain/access/issuance/refused-issuance.js';
import { DomainError, type Challenge } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { DPOP_ALGORITHMS } from './dpop/dpop-proof.js';

/**
 * The client id of the command-line program of this product. No other OAuth client can call the
 * APIs of the service in the name of a user.
 */
export const CLI_CLIENT_ID = 'svc-cli';

/** The scope for the APIs of organization admins. */
export const ADMIN_SCOPE = 'svc:admin';

/** The scope for the API by which a user manages the own applications. */
export const APPLICATIONS_SCOPE = 'svc:applications';

/**
 * The scopes whose tokens must be short-lived and bound to a DPoP key, because a stolen token could
 * do more than issue one credential.
 */
const BOUND_SCOPES: ReadonlySet<string> = new Set([ADMIN_SCOPE, APPLICATIONS_SCOPE]);

/** Returns true if an access token with a scope must be short-lived and bound to a DPoP key. */
export function isBoundScope(scope: string): boolean {
  return BOUND_SCOPES.has(scope);
}

/**
 * The only scopes that the command-line program gets by a device code. They are few, because the
 * user may have approved the device of an attacker by mistake.
 */
export const DEVICE_SCOPES: ReadonlySet<string> = new Set(['openid', 'svc:credentials']);

/** The permissions of an OAuth access token, and the keys to which it is bound. */
export interface AccessToken {
  readonly clientId: string;
  readonly scope: ReadonlySet<string>;
  /**
   * True if the token is for a resource server (RFC 8707). Such a token does not open the APIs of
   * the service.
   */
  readonly hasAudience: boolean;
  /** True if the token was issued for a device code (RFC 8628). */
  readonly isOfDevice: boolean;
  /**
   * The thumbprint of the DPoP key to which the token is bound (RFC 9449 §6); null if it is bound
   * to none.
   */
  readonly jkt: string | null;
  /**
   * The thumbprint of the client certificate to which the token is bound (RFC 8705 §3.1); null if
   * it is bound to none.
   */
  readonly x5t: string | null;
}

/**
 * Reads the permissions of an access token, and the keys to which it is bound, from the payload
 * that the OAuth library stores. If the thumbprint of such a key cannot be read, the result has an
 * empty text. No key matches it, so the token opens nothing.
 */
export function accessToken(
  clientId: string,
  payload: Readonly<Record<string, unknown>> | null,
): AccessToken {
  const { scope, aud, gty, jkt, 'x5t#S256': x5t } = payload ?? {};
  const isOfDevice = gty === 'device_code';
  const scopes = typeof scope === 'string' ? scope.split(' ') : [];
  return {
    clientId,
    // An earlier version gave devices more scopes than {@link DEVICE_SCOPES}, so the additional
    // scopes are removed here.
    scope: new Set(isOfDevice ? scopes.filter((word) => DEVICE_SCOPES.has(word)) : scopes),
    hasAudience: aud !== undefined,
    isOfDevice,
    jkt: binding(jkt),
    x5t: binding(x5t),
  };
}

function binding(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : '';
}

/**
 * Checks that an access token opens a route of the service. The token must belong to the
 * command-line client and have the scope of the route. It must be sent under its own scheme (Bearer
 * or DPoP), and with its client certificate if it is bound to one. Tokens of other clients open
 * nothing here, because any client can register. The caller must still check and spend the DPoP
 * proof.
 *
 * @param scope the scope of the route; undefined for a route that accepts no OAuth token
 * @throws DomainError unauthenticated or insufficient_scope, each with its challenge
 */
export function assertOpens(
  presented: PresentedToken,
  token: AccessToken,
  scope: string | undefined,
): void {
  const scheme = token.jkt === null ? 'Bearer' : 'DPoP';
  if (token.clientId !== CLI_CLIENT_ID || token.hasAudience || scope === undefined) {
    throw refusedToken(scheme, 'This access token is not valid for this API.');
  }
  assertPresented(presented, token);
  if (!token.scope.has(scope)) {
    throw new DomainError('insufficient_scope', `This needs the scope ${scope}.`, {
      challenge: { ...challengeOf(scheme), scope },
    });
  }
  if (isBoundScope(scope) && token.jkt === null) {
    throw refusedToken('DPoP', 'An access token with this scope must be bound to a DPoP key.');
  }
}

/**
 * Checks that an access token was sent under its own scheme (Bearer or DPoP), and with its client
 * certificate if it is bound to one.
 *
 * @throws DomainError unauthenticated
 */
export function assertPresented(
  presented: PresentedToken,
  token: Pick<AccessToken, 'jkt' | 'x5t'>,
): void {
  const scheme = token.jkt === null ? 'Bearer' : 'DPoP';
  if (presented.scheme !== scheme) {
    throw refusedToken(scheme, `This access token must come under the ${scheme} scheme.`);
  }
  if (token.x5t !== null && token.x5t !== presented.certificate) {
    throw refusedToken(scheme, 'This access token is bound to another client certificate.');
  }
}

/** Returns the error for a SCIM token that is not accepted. */
export function refusedScimToken(): DomainError {
  return refusedToken('Bearer', 'The SCIM token is invalid, revoked or has expired.');
}

/**
 * Returns the error for an access token that is not accepted (RFC 6750 §3.1, `invalid_token`), with
 * the challenge (`WWW-Authenticate`) for the scheme.
 */
export function refusedToken(scheme: Challenge['scheme'], detail: string): DomainError {
  return new DomainError('unauthenticated', detail, { challenge: challengeOf(scheme) });
}

/** Returns the facts of a session that the error needs if a request for a credential is denied. */
export function deniedSession({
  isOfDevice,
  accessToken: token,
}: {
  readonly isOfDevice: boolean;
  readonly accessToken: Pick<AccessToken, 'jkt'> | null;
}): DeniedSession {
  const isBound = token !== null && token.jkt !== null;
  return { isOfDevice, challenge: challengeOf(isBound ? 'DPoP' : 'Bearer') };
}

/**
 * Returns the challenge (`WWW-Authenticate`) for a scheme. For DPoP it names the accepted
 * algorithms of proofs (RFC 9449 §7.1).
 */
export function challengeOf(scheme: Challenge['scheme']): Challenge {
  return scheme === 'DPoP' ? { scheme, algs: DPOP_ALGORITHMS } : { scheme };
}
