import { errors } from 'oidc-provider';
import { isSingleLine } from '#platform/text/single-line.js';
import { parseDn } from './subject-dn.js';
import { keysProblem } from './client-keys.js';
import { OWN_METADATA } from '../client-metadata.js';
import { addressProblem, redirectUriProblem } from './redirect-uri-rule.js';
import { OIDC_SCOPES } from '../scopes.js';

/** What a client may never say of itself. */
const OURS: ReadonlySet<string> = new Set(OWN_METADATA);
const SCOPES: ReadonlySet<string> = new Set(OIDC_SCOPES);

/**
 * The metadata of a client that registers itself, as far as it may have it: authorization codes alone, and nothing of our own
 * APIs. The server may replace what a client asks for (RFC 7591 §2), and the answer says what it got; what it does not know
 * it ignores.
 *
 * @returns what is no object as it came: the library refuses it
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

/** The most that is kept of a client that registers itself: bytes of its metadata, addresses of a list, characters of its name. */
const MOST_BYTES = 16 * 1024;
const MOST_ADDRESSES = 20;
const LONGEST_NAME = 64;

/** The metadata that are addresses beside those that users are sent back to (RFC 7591 §2, OpenID Connect Registration §2). */
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

/** The metadata that are judged here. The library has checked their types. */
interface DynamicMetadata extends Partial<
  Record<(typeof ADDRESSES)[number], string | readonly string[]>
> {
  readonly application_type?: string;
  readonly client_name?: string;
  readonly redirect_uris?: readonly string[];
  readonly post_logout_redirect_uris?: readonly string[];
  readonly tls_client_auth_subject_dn?: string;
}

/**
 * Checks what the library leaves open of the metadata of a client that registers itself.
 *
 * @throws InvalidClientMetadata or InvalidRedirectUri (RFC 7591 §3.2.2)
 */
export function checkDynamicMetadata(metadata: object): void {
  if (Buffer.byteLength(JSON.stringify(metadata)) > MOST_BYTES) {
    throw new errors.InvalidClientMetadata(`metadata may have at most ${MOST_BYTES} bytes`);
  }
  const redirects = returnAddressProblem(metadata, 'redirect_uris');
  if (redirects !== undefined) throw new errors.InvalidRedirectUri(redirects);
  const problem =
    nameProblem(metadata) ??
    returnAddressProblem(metadata, 'post_logout_redirect_uris') ??
    otherAddressProblem(metadata) ??
    subjectProblem(metadata) ??
    keysProblem(metadata);
  if (problem !== undefined) throw new errors.InvalidClientMetadata(problem);
}

/** The name stands on pages of ours, where it must not pass for text of ours. */
function nameProblem({ client_name: name }: DynamicMetadata): string | undefined {
  if (name === undefined || (isSingleLine(name) && Array.from(name).length <= LONGEST_NAME)) {
    return undefined;
  }
  return `client_name must be one line of at most ${LONGEST_NAME} characters, without any that turn the direction of text`;
}

/** Users are sent to both lists, so one rule holds for both. */
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
