import type { AdapterPayload, ClientMetadata } from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { ClientKind, LiveClient } from '#domain/grants/clients.repository.js';
import { isFapiAlgorithm } from './client-algorithms.js';
import { OIDC_SCOPES, OWN_SCOPES } from './scopes.js';

/** What we know of a client beside RFC 7591: never settable by whoever registers one over HTTP. */
export const OWN_METADATA = [
  'svc_id_token_lifetime',
  'svc_kind',
  'svc_org',
  'svc_owner',
  'svc_profile',
  'svc_resource_scopes',
] as const;

/**
 * Beside ours: `request_uris` is OpenID Connect Registration's, which the library dropped with its support for them, and
 * `require_pkce` is a client's own wish that PKCE be demanded of it (RFC 9700 §2.1.1).
 */
export const EXTRA_METADATA = [...OWN_METADATA, 'request_uris', 'require_pkce'] as const;

/** The names under which a client carries what is ours. */
export interface OwnMetadata {
  /** Seconds for which an ID token of this client is good, where it is not the usual time. */
  readonly svc_id_token_lifetime?: number;
  readonly svc_kind?: ClientKind;
  readonly svc_org?: string;
  readonly svc_owner?: string;
  readonly svc_profile?: 'fapi2';
  readonly svc_resource_scopes?: string;
  readonly request_uris?: readonly string[];
  readonly require_pkce?: boolean;
}

/** Between the hashes of the secrets that are good, in place of a secret: a character that none of them has. */
const SEPARATOR = '.';

/** What FAPI clients have where they registered nothing else: RFC 7591 says RS256. */
const FAPI_DEFAULTS = {
  id_token_signed_response_alg: 'ES256',
  authorization_signed_response_alg: 'ES256',
  introspection_signed_response_alg: 'ES256',
} as const;

/** The client as the library takes it. In place of its secret stand the hashes of all that are good at the moment. */
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
  };
}

/** An application whose secrets are all gone is refused as one that cannot authenticate, and not as a malformed one. */
function withoutSecret(kind: ClientKind): { client_secret?: string } {
  return kind === 'application' ? { client_secret: SEPARATOR } : {};
}

/** The hashes that stand in place of a client's secret. */
export function secretHashesOf(clientSecret: string | undefined): Buffer[] {
  return (clientSecret ?? '')
    .split(SEPARATOR)
    .filter((text) => text !== '')
    .map((text) => Buffer.from(text, 'base64url'));
}

/** What is kept of a client's metadata: neither its id nor its secret, and nothing of ours. */
export function storedMetadata(
  metadata: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const ours: ReadonlySet<string> = new Set([
    'client_id',
    'client_secret',
    'svc_kind',
    'svc_org',
    'svc_owner',
  ]);
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !ours.has(name)));
}

const FAPI_AUTH_METHODS = new Set([
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
]);

/**
 * What a client of the FAPI profile must be (FAPI 2.0 Security Profile §5.3.2): confidential by key or certificate, pushing
 * its requests, its tokens bound to a key.
 *
 * @throws InvalidClientMetadata
 */
export function checkFapiProfile(metadata: ClientMetadata & OwnMetadata): void {
  if (metadata.svc_profile !== 'fapi2') return;
  if (!FAPI_AUTH_METHODS.has(metadata.token_endpoint_auth_method ?? '')) {
    refuse('private_key_jwt, tls_client_auth or self_signed_tls_client_auth');
  }
  if (metadata.require_pushed_authorization_requests !== true) {
    refuse('require_pushed_authorization_requests');
  }
  if (
    metadata.dpop_bound_access_tokens !== true &&
    metadata.tls_client_certificate_bound_access_tokens !== true
  ) {
    refuse('dpop_bound_access_tokens or tls_client_certificate_bound_access_tokens');
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
      refuse(`PS256, ES256 or EdDSA as ${name}`);
    }
  }
}

function refuse(reason: string): never {
  throw new errors.InvalidClientMetadata(`the FAPI profile requires ${reason}`);
}
