import { errors } from 'oidc-provider';
import { isHttpsOrLoopback } from '#platform/http/loopback.js';
import { parseDn } from '#oidc/mutual-tls/subject-dn.js';
import { OWN_METADATA } from './client-metadata.js';
import { OIDC_SCOPES } from '#oidc/tokens/scopes.js';

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

/** The most that is kept of a client that registers itself: bytes of its metadata, and addresses that it comes back to. */
const MOST_BYTES = 16 * 1024;
const MOST_ADDRESSES = 20;

/**
 * What the library leaves open of the metadata of a client that registers itself.
 *
 * @throws InvalidClientMetadata or InvalidRedirectUri (RFC 7591 §3.2.2)
 */
export function checkDynamicMetadata(metadata: object): void {
  const { redirect_uris: redirects = [], tls_client_auth_subject_dn: subject } = metadata as {
    redirect_uris?: readonly string[];
    tls_client_auth_subject_dn?: string;
  };
  if (Buffer.byteLength(JSON.stringify(metadata)) > MOST_BYTES) {
    throw new errors.InvalidClientMetadata(`metadata may have at most ${MOST_BYTES} bytes`);
  }
  if (redirects.length > MOST_ADDRESSES) {
    throw new errors.InvalidRedirectUri(`redirect_uris may be at most ${MOST_ADDRESSES}`);
  }
  // RFC 9700 §2.1: codes do not travel in the clear, except within one machine.
  if (redirects.some((uri) => URL.parse(uri)?.protocol === 'http:' && !isHttpsOrLoopback(uri))) {
    throw new errors.InvalidRedirectUri('redirect_uris must be https, except to a loopback host');
  }
  if (subject !== undefined && !parseDn(subject)) {
    throw new errors.InvalidClientMetadata(
      'tls_client_auth_subject_dn must be a distinguished name as RFC 4514 writes it',
    );
  }
}
