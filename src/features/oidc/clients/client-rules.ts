import { errors, type Client, type ClientMetadata, type KoaContextWithOIDC } from 'oidc-provider';
import type { OwnMetadata } from './client-metadata.js';

/** Seconds a client assertion may be good for, and a request object at most (FAPI 2.0 Message Signing §5.3.1). */
const LONGEST_ASSERTION = 300;
const LONGEST_REQUEST_OBJECT = 3600;

/** Seconds that a client's clock may be ahead of ours (FAPI 2.0 Security Profile §5.3.2.1). */
const CLOCK_AHEAD = 60;

/** What of a JWT's payload is judged. */
interface Claims {
  readonly aud?: unknown;
  readonly iat?: unknown;
  readonly exp?: unknown;
  readonly nbf?: unknown;
}

/** Whether a client is held to the FAPI 2.0 Security Profile. */
export function isFapi(client: OwnMetadata | undefined): boolean {
  return client?.svc_profile === 'fapi2';
}

/**
 * Who must use PKCE: clients without a secret, FAPI clients, and whoever sends no nonce, which ties a code to its request as
 * well (RFC 9700 §2.1.1).
 */
export function requiresPkce(ctx: KoaContextWithOIDC, client: Client & OwnMetadata): boolean {
  const nonce = ctx.oidc.params?.['nonce'];
  return client.clientAuthMethod === 'none' || isFapi(client) || typeof nonce !== 'string';
}

/**
 * A client assertion is for us and nobody else, and short-lived (FAPI 2.0 Security Profile §5.3.2.1): its audience is the
 * issuer, a string, whatever address it was sent to.
 *
 * @throws InvalidClientAuth
 */
export function checkClientAssertion(issuer: string, claims: Claims): void {
  const now = Math.floor(Date.now() / 1000);
  if (claims.aud !== issuer) {
    throw new errors.InvalidClientAuth(
      'audience (aud) must be the issuer identifier, and it alone',
    );
  }
  if (isAhead(claims)) {
    throw new errors.InvalidClientAuth('the client assertion is from the future');
  }
  const lifetime = Number(claims.exp) - now;
  const issued = claims.iat === undefined ? now : Number(claims.iat);
  if (!(lifetime <= LONGEST_ASSERTION) || !(Number(claims.exp) - issued <= LONGEST_ASSERTION)) {
    throw new errors.InvalidClientAuth(
      `a client assertion may be good for ${LONGEST_ASSERTION} seconds at most`,
    );
  }
}

/**
 * A signed request of a FAPI client says when it was made and when it is over, an hour later at most (FAPI 2.0 Message Signing
 * §5.3.1).
 *
 * @throws InvalidRequestObject
 */
export function checkRequestObject(claims: Claims, client: OwnMetadata): void {
  if (!isFapi(client)) return;
  const now = Math.floor(Date.now() / 1000);
  if (typeof claims.nbf !== 'number' || now - claims.nbf > LONGEST_REQUEST_OBJECT) {
    throw new errors.InvalidRequestObject('nbf must be there, and no more than an hour ago');
  }
  if (isAhead(claims)) {
    throw new errors.InvalidRequestObject('the request object is from the future');
  }
  if (typeof claims.exp !== 'number' || claims.exp - claims.nbf > LONGEST_REQUEST_OBJECT) {
    throw new errors.InvalidRequestObject('exp must be there, and no more than an hour after nbf');
  }
}

function isAhead({ iat, nbf }: Claims): boolean {
  const latest = Date.now() / 1000 + CLOCK_AHEAD;
  return [iat, nbf].some((time) => time !== undefined && !(Number(time) <= latest));
}

/** The checks of metadata that the library makes one property at a time. */
export function checkMetadata(
  _ctx: unknown,
  key: string,
  value: unknown,
  metadata: ClientMetadata & OwnMetadata,
): void {
  if (key !== 'request_uris' || value === undefined) return;
  const addresses = metadata.request_uris;
  const isList = Array.isArray(addresses) && addresses.length <= 10;
  if (
    !isList ||
    !addresses.every((one) => typeof one === 'string' && URL.parse(one)?.protocol === 'https:')
  ) {
    throw new errors.InvalidClientMetadata(
      'request_uris must be a list of ten https addresses at most',
    );
  }
}
