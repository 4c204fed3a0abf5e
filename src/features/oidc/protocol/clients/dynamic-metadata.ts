import { isVisibleLine } from '#platform/text/single-line.js';
import { parseDn } from './subject-dn.js';
import { keysProblem } from './client-keys.js';
import { OWN_METADATA } from '../client-metadata.js';
import { errors } from '../library.js';
import { addressProblem, redirectUriProblem } from './redirect-uri-rule.js';
import { OIDC_SCOPES } from '../scopes.js';

/** The metadata that a client cannot set itself. */
const OURS: ReadonlySet<string> = new Set(OWN_METADATA);
const SCOPES: ReadonlySet<string> = new Set(OIDC_SCOPES);

/**
 * Limits the metadata of a client that registers itself: the client gets only authorization codes,
 * and no scope of our own APIs. A server may replace a client's values (RFC 7591 §2), and the
 * response contains the result. Unknown metadata are ignored.
 *
 * @returns the limited metadata; a value that is no object is returned unchanged, because the
 *   OAuth library refuses it
 */
export function dynamicMetadata(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const metadata = Object.fromEntries(Object.entries(body).filter(([name]) => !OURS.has(name)));
  const { grant_types: grants, scope } = metadata;
  if (Array.isArray(grants)) metadata['grant_types'] = ['authorization_code'];
  if (typeof scope === 'string') {
    metadata['scope'] = scope
      .split(' ')
      .filter((one) => SCOPES.has(one))
      .join(' ');
    if (metadata['scope'] === '') delete metadata['scope'];
  }
  return metadata;
}

/**
 * The limits of a client that registers itself: the bytes of its metadata, the URIs in a list of
 * redirect URIs, and the characters of its name.
 */
const MOST_BYTES = 16 * 1024;
const MOST_ADDRESSES = 20;
const LONGEST_NAME = 64;

/**
 * The metadata of a client that are URLs other than redirect URIs (RFC 7591 §2, OpenID Connect
 * Registration §2).
 */
const ADDRESSES = [
  'backchannel_logout_uri',
  'client_uri',
  'initiate_login_uri',
  'jwks_uri',
  'logo_uri',
  'policy_uri',
  'request_uris',
  'sector_identifier_uri',
  'tos_uri',
] as const;

/**
 * The metadata of a client that this file checks. The OAuth library has already checked their
 * types.
 */
interface DynamicMetadata extends Partial<
  Record<(typeof ADDRESSES)[number], string | readonly string[]>
> {
  readonly application_type?: string;
  readonly client_name?: string;
  readonly redirect_uris?: readonly string[];
  readonly response_modes?: readonly string[];
  readonly post_logout_redirect_uris?: readonly string[];
  readonly tls_client_auth_subject_dn?: string;
}

/**
 * Checks the metadata of a client that registers itself, beyond the OAuth library's own checks.
 *
 * @param known the registration that an update changes; its present name is not checked again
 * @throws InvalidClientMetadata or InvalidRedirectUri (RFC 7591 §3.2.2)
 */
export function checkDynamicMetadata(metadata: object, known: DynamicMetadata = {}): void {
  if (Buffer.byteLength(JSON.stringify(metadata)) > MOST_BYTES) {
    throw new errors.InvalidClientMetadata(`metadata may have at most ${MOST_BYTES} bytes`);
  }
  const redirects = returnAddressProblem(metadata, 'redirect_uris');
  if (redirects !== undefined) throw new errors.InvalidRedirectUri(redirects);
  const problem =
    nameProblem(metadata, known) ??
    responseModeProblem(metadata) ??
    returnAddressProblem(metadata, 'post_logout_redirect_uris') ??
    otherAddressProblem(metadata) ??
    subjectProblem(metadata) ??
    keysProblem(metadata);
  if (problem !== undefined) throw new errors.InvalidClientMetadata(problem);
}

/**
 * Finds the fault of the client's name. Our pages show the name, so it must not look like a text of
 * the page itself.
 */
function nameProblem(
  { client_name: name }: DynamicMetadata,
  known: DynamicMetadata,
): string | undefined {
  if (name === undefined || name === known.client_name) return undefined;
  if (isVisibleLine(name) && Array.from(name).length <= LONGEST_NAME) return undefined;
  return `client_name must be one line of at most ${LONGEST_NAME} characters, without invisible ones`;
}

/**
 * Finds the fault of the response modes. The mode `form_post` is refused, because our
 * Content-Security-Policy forbids its page, and the client would wait for responses that never
 * come.
 */
function responseModeProblem({ response_modes: modes = [] }: DynamicMetadata): string | undefined {
  return modes.some((mode) => mode.startsWith('form_post'))
    ? 'response_modes: form_post is not supported; register query, fragment or jwt'
    : undefined;
}

/** Finds the fault of the URIs to which users are redirected after a login or a logout. */
function returnAddressProblem(
  metadata: DynamicMetadata,
  name: 'redirect_uris' | 'post_logout_redirect_uris',
): string | undefined {
  const uris = metadata[name] ?? [];
  if (uris.length > MOST_ADDRESSES) return `${name} may be at most ${MOST_ADDRESSES}`;
  const kind = { isNative: metadata.application_type === 'native', isFapi: false };
  const problem = uris.map((uri) => redirectUriProblem(uri, kind)).find((one) => one !== undefined);
  return problem && `${name}: ${problem}`;
}

function otherAddressProblem(metadata: DynamicMetadata): string | undefined {
  for (const name of ADDRESSES) {
    for (const uri of [metadata[name] ?? []].flat()) {
      const problem = addressProblem(uri);
      if (problem !== undefined) return `${name}: ${problem}`;
    }
  }
  return undefined;
}

function subjectProblem({ tls_client_auth_subject_dn: subject }: DynamicMetadata) {
  return subject === undefined || parseDn(subject)
    ? undefined
    : 'tls_client_auth_subject_dn must be a distinguished name as RFC 4514 writes it';
}
