import { errors, type Client, type ClientMetadata } from 'oidc-provider';
import { isFapiAlgorithm } from '../client-algorithms.js';
import type { OwnMetadata } from '../client-metadata.js';

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
 * Which clients must use PKCE: those without a secret, FAPI clients, and those that registered `require_pkce`. Of the others it
 * is not demanded: a nonce is optional in the code flow (OpenID Connect Core §3.1.2.1), and so is PKCE.
 */
export function requiresPkce(_ctx: unknown, client: Client & OwnMetadata): boolean {
  return client.clientAuthMethod === 'none' || isFapi(client) || client.require_pkce === true;
}

/** What of a JWT's header is judged. */
interface Header {
  readonly alg?: unknown;
}

/** A client assertion (RFC 7523 §3), and for which addresses it may have been made. */
export interface ClientAssertion {
  readonly claims: Claims;
  readonly header: Header;
  readonly issuer: string;
  /** The token endpoint, by each of its addresses. */
  readonly tokenEndpoints: readonly string[];
}

/**
 * A client assertion is for us alone, and short-lived. Its audience is the issuer, a string, at every address of ours (FAPI
 * 2.0 Security Profile §5.3.2.1). From clients without that profile the token endpoint will do as well (RFC 7523 §3).
 *
 * @throws InvalidClientAuth
 */
export function checkClientAssertion(assertion: ClientAssertion, client: OwnMetadata): void {
  const { claims, header, issuer, tokenEndpoints } = assertion;
  const now = Math.floor(Date.now() / 1000);
  if (isFapi(client) && claims.aud !== issuer) {
    throw new errors.InvalidClientAuth(
      'audience (aud) must be the issuer identifier, and it alone',
    );
  }
  if (typeof claims.aud !== 'string' || ![issuer, ...tokenEndpoints].includes(claims.aud)) {
    throw new errors.InvalidClientAuth(
      'audience (aud) must be the issuer identifier or the token endpoint, and nothing else',
    );
  }
  if (isFapi(client) && !isFapiAlgorithm(header.alg)) {
    throw new errors.InvalidClientAuth('alg mismatch');
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

/** A request object (RFC 9101 §2.1), and how it came. */
interface RequestObject {
  readonly claims: Claims;
  readonly header: Header;
  readonly isPushed: boolean;
}

/**
 * A signed request of a FAPI client says when it was made and when it is over, an hour later at most (FAPI 2.0 Message Signing
 * §5.3.1), under an algorithm of that profile.
 *
 * @param isPushed that it was judged when it was pushed: what is kept of it since then carries no signature
 * @throws InvalidRequestObject
 */
export function checkRequestObject(
  { claims, header, isPushed }: RequestObject,
  client: OwnMetadata,
): void {
  if (!isFapi(client)) return;
  if (!isPushed && !isFapiAlgorithm(header.alg)) {
    throw new errors.InvalidRequestObject('unsupported signed request alg');
  }
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
  if (key === 'require_pkce' && value !== undefined && typeof value !== 'boolean') {
    throw new errors.InvalidClientMetadata('require_pkce must be a boolean');
  }
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
