import { isFapi, isFapiAlgorithm, type OwnMetadata } from '../client-metadata.js';
import { errors, type Client, type ClientMetadata } from '../library.js';
import { redirectUriProblem } from './redirect-uri-rule.js';

/**
 * The longest lifetime in seconds of a client assertion, and of a request object (FAPI 2.0 Message
 * Signing §5.3.1).
 */
const LONGEST_ASSERTION = 300;
const LONGEST_REQUEST_OBJECT = 3600;

/**
 * The seconds by which a client's clock may be ahead of ours (FAPI 2.0 Security Profile §5.3.2.1).
 */
const CLOCK_AHEAD = 60;

/** The claims of a JWT that the rules of this file check. */
interface Claims {
  readonly aud?: unknown;
  readonly iat?: unknown;
  readonly exp?: unknown;
  readonly nbf?: unknown;
  readonly response_type?: unknown;
  readonly redirect_uri?: unknown;
}

/**
 * Returns true if a client must use PKCE, which protects its codes: a public client, a FAPI client,
 * and a client that registered `require_pkce`. For other clients PKCE is optional, because OpenID
 * Connect Core does not demand it.
 */
export function requiresPkce(_ctx: unknown, client: Client & OwnMetadata): boolean {
  return client.clientAuthMethod === 'none' || isFapi(client) || client.require_pkce === true;
}

/** The members of a JWT's header that the rules of this file check. */
interface Header {
  readonly alg?: unknown;
  readonly typ?: unknown;
}

/**
 * The types that a client assertion may state, in lower case. A JWT of another type is for another
 * purpose, and may be known to others (RFC 8725 §3.11). For example, a request object
 * (`oauth-authz-req+jwt`) is in the address bar of a browser (RFC 9101 §10.8).
 */
const ASSERTION_TYPES: readonly unknown[] = [undefined, 'jwt', 'client-authentication+jwt'];

/**
 * A client assertion, which is a JWT by which a client authenticates (RFC 7523 §3), and the
 * audiences that it may name.
 */
export interface ClientAssertion {
  readonly claims: Claims;
  readonly header: Header;
  readonly issuer: string;
  /**
   * The URLs of the token endpoint: the published URL, and the URL at the listener that received
   * the request. In a pushed request, the two URLs of the endpoint for pushed requests are also
   * listed.
   */
  readonly endpoints: readonly string[];
}

/**
 * Checks a client assertion, by which a client authenticates. It must not be a request object,
 * because a JWT of one kind must not pass as another one (RFC 8725 §3.12). Many request objects
 * state no type, so they are recognized by their parameters. An assertion must be short-lived, and
 * its only audience must be the issuer (FAPI 2.0 Security Profile §5.3.2.1). For a client without
 * the FAPI profile, the audience may also be the token endpoint (RFC 7523 §3). In a pushed request
 * it may be the endpoint of pushed requests (RFC 9126 §2).
 *
 * @param milliseconds the present time in milliseconds since 1970
 * @throws InvalidClientAuth with the rule that the assertion breaks
 */
export function checkClientAssertion(
  assertion: ClientAssertion,
  client: OwnMetadata,
  milliseconds: number,
): void {
  const { claims, header, issuer, endpoints } = assertion;
  if (!ASSERTION_TYPES.includes(typeIn(header))) {
    throw new errors.InvalidClientAuth('typ must be JWT or client-authentication+jwt, or missing');
  }
  if (claims.response_type !== undefined || claims.redirect_uri !== undefined) {
    throw new errors.InvalidClientAuth('a request object is no client assertion');
  }
  const now = Math.floor(milliseconds / 1000);
  if (isFapi(client) && claims.aud !== issuer) {
    throw new errors.InvalidClientAuth(
      'audience (aud) must be the issuer identifier, and it alone',
    );
  }
  if (typeof claims.aud !== 'string' || ![issuer, ...endpoints].includes(claims.aud)) {
    throw new errors.InvalidClientAuth(
      'audience (aud) must be the issuer identifier, the token endpoint or the endpoint of the pushed request, and nothing else',
    );
  }
  if (isFapi(client) && !isFapiAlgorithm(header.alg)) {
    throw new errors.InvalidClientAuth('alg mismatch');
  }
  if (isAhead(claims, milliseconds)) {
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

/** A request object (RFC 9101 §2.1), and true in `isPushed` if it came in a pushed request. */
interface RequestObject {
  readonly claims: Claims;
  readonly header: Header;
  readonly isPushed: boolean;
}

/**
 * Checks a request object of a FAPI client. FAPI must allow its algorithm, and its lifetime must be
 * at most an hour (FAPI 2.0 Message Signing §5.3.1). The algorithm of a pushed request object is
 * not checked, because its header is not stored. Its signature was checked when it was pushed.
 *
 * @param milliseconds the present time in milliseconds since 1970
 * @throws InvalidRequestObject with the rule that the object breaks
 */
export function checkRequestObject(
  { claims, header, isPushed }: RequestObject,
  client: OwnMetadata,
  milliseconds: number,
): void {
  if (!isFapi(client)) return;
  if (!isPushed && !isFapiAlgorithm(header.alg)) {
    throw new errors.InvalidRequestObject('unsupported signed request alg');
  }
  const now = Math.floor(milliseconds / 1000);
  if (typeof claims.nbf !== 'number' || now - claims.nbf > LONGEST_REQUEST_OBJECT) {
    throw new errors.InvalidRequestObject('nbf must be there, and no more than an hour ago');
  }
  if (isAhead(claims, milliseconds)) {
    throw new errors.InvalidRequestObject('the request object is from the future');
  }
  if (typeof claims.exp !== 'number' || claims.exp - claims.nbf > LONGEST_REQUEST_OBJECT) {
    throw new errors.InvalidRequestObject('exp must be there, and no more than an hour after nbf');
  }
}

/**
 * Returns the type of a JWT in lower case, without the prefix `application/` (RFC 7515 §4.1.9).
 */
function typeIn({ typ }: Header): unknown {
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : typ;
}

function isAhead({ iat, nbf }: Claims, milliseconds: number): boolean {
  const latest = milliseconds / 1000 + CLOCK_AHEAD;
  return [iat, nbf].some((time) => time !== undefined && !(Number(time) <= latest));
}

/** The client metadata whose values must be booleans. The OAuth library does not know them. */
const FLAGS: ReadonlySet<string> = new Set([
  'require_pkce',
  'backchannel_logout_session_required',
  'backchannel_logout_at_session_end',
]);

/**
 * Checks the URL to which a client wants logout tokens sent (OpenID Connect Back-Channel Logout
 * §2.2).
 *
 * @throws InvalidClientMetadata if the URL breaks a rule for redirect URIs
 */
function checkLogoutAddress(value: unknown): void {
  const problem =
    typeof value === 'string'
      ? redirectUriProblem(value, { isNative: false, isFapi: false })
      : 'must be a URL';
  if (problem === undefined) return;
  throw new errors.InvalidClientMetadata(`backchannel_logout_uri: ${problem}`);
}

/**
 * Checks one member of a client's metadata that the OAuth library does not know. The library calls
 * this function for each such member.
 *
 * @throws InvalidClientMetadata for a wrong value
 */
export function checkMetadata(
  _ctx: unknown,
  key: string,
  value: unknown,
  metadata: ClientMetadata & OwnMetadata,
): void {
  if (FLAGS.has(key) && value !== undefined && typeof value !== 'boolean') {
    throw new errors.InvalidClientMetadata(`${key} must be a boolean`);
  }
  if (key === 'backchannel_logout_uri' && value !== undefined) checkLogoutAddress(value);
  if (key !== 'request_uris' || value === undefined) return;
  const addresses = metadata.request_uris;
  const isList = Array.isArray(addresses) && addresses.length <= 10;
  if (
    !isList ||
    !addresses.every((one) => typeof one === 'string' && URL.parse(one)?.protocol === 'https:')
  ) {
    throw new errors.InvalidClientMetadata('request_uris must be a list of ten https URLs at most');
  }
}
