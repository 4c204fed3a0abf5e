import type { ClientKind, LiveClient } from '#domain/oauth/clients/clients.repository.js';
import { errors, type AdapterPayload, type ClientMetadata } from './library.js';
import { OIDC_SCOPES, OWN_SCOPES } from './scopes.js';

/**
 * The algorithms that a client of the FAPI profile may sign with (FAPI 2.0 Security Profile
 * §5.4.1).
 */
export const FAPI_ALGORITHMS = ['PS256', 'ES256', 'EdDSA', 'Ed25519'] as const;

/**
 * The algorithms that a client without the FAPI profile may sign with. RS256 is the default of
 * OpenID Connect (Core §15.1).
 */
export const CLIENT_ALGORITHMS = [...FAPI_ALGORITHMS, 'RS256'] as const;

/** The algorithms that this server signs with. */
export const OUR_ALGORITHMS = ['ES256', 'RS256'] as const;

const FAPI: ReadonlySet<unknown> = new Set(FAPI_ALGORITHMS);

/** Returns true if the FAPI profile allows a signature algorithm. */
export function isFapiAlgorithm(algorithm: unknown): boolean {
  return FAPI.has(algorithm);
}

/**
 * The client metadata that only this service defines. A client that registers itself cannot set
 * them.
 */
export const OWN_METADATA = [
  'svc_approved_uris',
  'svc_id_token_lifetime',
  'svc_kind',
  'svc_org',
  'svc_signals',
  'svc_owner',
  'svc_profile',
  'svc_resource_scopes',
] as const;

/**
 * The client metadata about logout tokens: those of OpenID Connect Back-Channel Logout §2.2, and
 * `backchannel_logout_at_session_end`, which only this service defines.
 */
export const LOGOUT_METADATA = [
  'backchannel_logout_uri',
  'backchannel_logout_session_required',
  'backchannel_logout_at_session_end',
] as const;

/**
 * The client metadata that the OAuth library does not know. `request_uris` is defined by OpenID
 * Connect Registration. By `require_pkce` a client says that its requests always use PKCE (RFC 9700
 * §2.1.1). The library knows the logout metadata only if it sends the logout tokens, but this
 * service sends them itself.
 */
export const EXTRA_METADATA = [
  ...OWN_METADATA,
  ...LOGOUT_METADATA,
  'request_uris',
  'require_pkce',
] as const;

/** The metadata of a client that this service uses and the OAuth library does not know. */
export interface OwnMetadata {
  /** The redirect URIs of the application that an admin has approved for the organization. */
  readonly svc_approved_uris?: readonly string[];
  /** The lifetime of an ID token in seconds, if the client registered one. */
  readonly svc_id_token_lifetime?: number;
  readonly svc_kind?: ClientKind;
  readonly svc_org?: string;
  readonly svc_owner?: string;
  readonly svc_profile?: 'fapi2';
  readonly svc_resource_scopes?: string;
  /**
   * Set for an application that receives signals, which are security events about its users. With
   * `only`, the application can get tokens of client credentials for signals alone. With `too`, it
   * registered that grant type itself, also for other purposes.
   */
  readonly svc_signals?: 'only' | 'too';
  readonly request_uris?: readonly string[];
  readonly require_pkce?: boolean;
}

/** Returns true if a client follows the FAPI 2.0 Security Profile. */
export function isFapi(client: OwnMetadata | undefined): boolean {
  return client?.svc_profile === 'fapi2';
}

/**
 * The separator between the hashes of a client's valid secrets. The OAuth library gets the joined
 * hashes in the place of one secret. No hash contains the separator.
 */
const SEPARATOR = '.';

/**
 * The default algorithms of FAPI clients. For other clients the default is RS256, which FAPI does
 * not allow.
 */
const FAPI_DEFAULTS = {
  id_token_signed_response_alg: 'ES256',
  authorization_signed_response_alg: 'ES256',
  introspection_signed_response_alg: 'ES256',
} as const;

/**
 * Converts a client to the metadata that the OAuth library reads. The hashes of all valid secrets
 * take the place of its secret.
 */
export function libraryMetadata(client: LiveClient): AdapterPayload {
  const { secretHashes, kind } = client;
  const scopes = kind === 'first-party' ? [...OIDC_SCOPES, ...OWN_SCOPES] : OIDC_SCOPES;
  const known = client.metadata['scope'];
  return {
    ...(client.metadata['svc_profile'] === 'fapi2' ? FAPI_DEFAULTS : {}),
    ...client.metadata,
    client_id: client.id,
    scope: typeof known === 'string' && kind !== 'first-party' ? known : scopes.join(' '),
    ...(secretHashes.length === 0
      ? withoutSecret(kind)
      : { client_secret: secretHashes.map((hash) => hash.toString('base64url')).join(SEPARATOR) }),
    svc_kind: kind,
    ...(client.orgId === null ? {} : { svc_org: client.orgId }),
    ...(client.ownerId === null ? {} : { svc_owner: client.ownerId }),
    ...(client.approvedUris === null ? {} : { svc_approved_uris: client.approvedUris }),
    ...(client.receivesSignals ? signalMetadata(client) : {}),
  };
}

/**
 * Returns the metadata of an application that receives signals, which are security events about its
 * users. It gets the grant type `client_credentials`. If it did not register this grant type
 * itself, it can use it for signals alone.
 */
function signalMetadata({ metadata }: LiveClient): AdapterPayload {
  const grants = (metadata['grant_types'] as readonly string[] | undefined) ?? [];
  if (grants.includes('client_credentials')) return { svc_signals: 'too' };
  return { svc_signals: 'only', grant_types: [...grants, 'client_credentials'] };
}

/**
 * Gives an application without valid secrets an empty list of hashes as its secret, so that its
 * authentication fails. Without a secret the OAuth library would refuse the client as malformed.
 */
function withoutSecret(kind: ClientKind): { client_secret?: string } {
  return kind === 'application' ? { client_secret: SEPARATOR } : {};
}

/**
 * Returns the hashes of a client's valid secrets, which the OAuth library has in the place of one
 * secret. The list is empty for a client without a secret.
 */
export function secretHashesOf(clientSecret: string | undefined): Buffer[] {
  return (clientSecret ?? '')
    .split(SEPARATOR)
    .filter((text) => text !== '')
    .map((text) => Buffer.from(text, 'base64url'));
}

/**
 * Returns the metadata of a client that are stored in one JSON column. Left out are those that have
 * a column or table of their own, such as the id and the secrets.
 */
export function storedMetadata(
  metadata: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const ours: ReadonlySet<string> = new Set([
    'client_id',
    'client_secret',
    'svc_kind',
    'svc_org',
    'svc_owner',
    'svc_approved_uris',
    'svc_signals',
  ]);
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !ours.has(name)));
}

const FAPI_AUTH_METHODS = new Set([
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
]);

/**
 * Checks a client of the FAPI profile (FAPI 2.0 Security Profile §5.3.2): it authenticates by key
 * or certificate, pushes its requests, and binds its tokens to a key.
 *
 * @throws InvalidClientMetadata that names the missing property
 */
export function checkFapiProfile(metadata: ClientMetadata & OwnMetadata): void {
  if (metadata.svc_profile !== 'fapi2') return;
  if (!FAPI_AUTH_METHODS.has(metadata.token_endpoint_auth_method ?? '')) {
    reject('private_key_jwt, tls_client_auth or self_signed_tls_client_auth');
  }
  if (metadata.require_pushed_authorization_requests !== true) {
    reject('require_pushed_authorization_requests');
  }
  if (
    metadata.dpop_bound_access_tokens !== true &&
    metadata.tls_client_certificate_bound_access_tokens !== true
  ) {
    reject('dpop_bound_access_tokens or tls_client_certificate_bound_access_tokens');
  }
  for (const name of [
    'id_token_signed_response_alg',
    'token_endpoint_auth_signing_alg',
    'request_object_signing_alg',
    'authorization_signed_response_alg',
    'introspection_signed_response_alg',
    'userinfo_signed_response_alg',
  ] as const) {
    const value = metadata[name];
    if (value !== undefined && !isFapiAlgorithm(value)) {
      reject(`PS256, ES256 or EdDSA as ${name}`);
    }
  }
}

function reject(reason: string): never {
  throw new errors.InvalidClientMetadata(`the FAPI profile requires ${reason}`);
}
