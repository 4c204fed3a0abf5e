import type { DeniedSession } from '#domain/access/issuance/refused-issuance.js';
import { DomainError, type Challenge } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { DPOP_ALGORITHMS } from './dpop-proof.js';

/**
 * The command-line client of the service: the only OAuth client whose tokens open the APIs of the
 * service.
 */
export const CLI_CLIENT_ID = 'svc-cli';

/** The scope of organization admins. */
export const ADMIN_SCOPE = 'svc:admin';

/** The scope of the applications that a user manages. */
export const APPLICATIONS_SCOPE = 'svc:applications';

/**
 * The scopes whose tokens are short-lived and bound to a DPoP key, because a stolen token could do
 * more than issue one credential.
 */
const BOUND_SCOPES: ReadonlySet<string> = new Set([ADMIN_SCOPE, APPLICATIONS_SCOPE]);

/** Returns true if an access token with a scope must be short-lived and bound to a DPoP key. */
export function isBoundScope(scope: string): boolean {
  return BOUND_SCOPES.has(scope);
}

/**
 * The most scopes that a device code gives the command line. They are few because the user may have
 * approved the device of a stranger.
 */
export const DEVICE_SCOPES: ReadonlySet<string> = new Set(['openid', 'svc:credentials']);

/** The permissions and bindings of an OAuth access token. */
export interface AccessToken {
  readonly clientId: string;
  readonly scope: ReadonlySet<string>;
  /** True for a token of a resource server. No API of the service is a resource server. */
  readonly hasAudience: boolean;
  /** True for a token of the device flow. */
  readonly isOfDevice: boolean;
  /** The thumbprint of the DPoP key that must prove possession of the token (RFC 9449 §6). */
  readonly jkt: string | null;
  /** The thumbprint of the client certificate that the token is bound to (RFC 8705 §3.1). */
  readonly x5t: string | null;
}

/**
 * Reads the payload that the OAuth library stores for an access token. An unreadable binding
 * matches no key.
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
    // An earlier version gave devices more.
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
 * Checks that an access token opens a route of the service. The token must be of the command-line
 * client, have the scope of the route, and come under its scheme and with its client certificate.
 * Tokens of other clients open nothing here, because any client can register. The caller then
 * spends the DPoP proof.
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
  if (presented.scheme !== scheme) {
    throw refusedToken(scheme, `This access token must come under the ${scheme} scheme.`);
  }
  if (token.x5t !== null && token.x5t !== presented.certificate) {
    throw refusedToken(scheme, 'This access token is bound to another client certificate.');
  }
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
 * Returns the error for a token that is not accepted (RFC 6750 §3.1, `invalid_token`), with the
 * challenge of the scheme.
 */
export function refusedToken(scheme: Challenge['scheme'], detail: string): DomainError {
  return new DomainError('unauthenticated', detail, { challenge: challengeOf(scheme) });
}

/** Returns the facts of a session by which a denial of issuance is answered. */
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
 * Returns the challenge of a scheme: for DPoP with the algorithms of the proofs (RFC 9449 §7.1).
 */
export function challengeOf(scheme: Challenge['scheme']): Challenge {
  return scheme === 'DPoP' ? { scheme, algs: DPOP_ALGORITHMS } : { scheme };
}
