import {
  ID_TOKEN_LIFETIME,
  TYPES,
  type ApplicationType,
  type Registration,
} from './registration.js';

/** The response modes in which an authorization response is a signed JWT (JARM §2.3). */
const SIGNED_MODES = ['jwt', 'query.jwt'];

/**
 * Converts a registration, which has the names of the API, to the client metadata that is stored.
 * The metadata has the names of RFC 7591 §2 and further names of this service. Values that are
 * defaults of the OAuth library are left out.
 */
export function metadataOf(registration: Registration): Record<string, unknown> {
  const { sender_constraint: binding, profile, scopes, request_uris: requests } = registration;
  const { id_token_lifetime_seconds: lifetime, userinfo_signed_response_alg: userinfoAlg } =
    registration;
  const usesCodes = registration.grant_types.includes('authorization_code');
  return {
    client_name: registration.name,
    application_type: TYPES[registration.type].isNative ? 'native' : 'web',
    grant_types: registration.grant_types,
    response_types: usesCodes ? ['code'] : [],
    redirect_uris: registration.redirect_uris,
    post_logout_redirect_uris: registration.post_logout_redirect_uris,
    token_endpoint_auth_method: registration.auth_method,
    ...(registration.initiate_login_uri === null
      ? {}
      : { initiate_login_uri: registration.initiate_login_uri }),
    ...(profile ? { svc_profile: profile, require_pushed_authorization_requests: true } : {}),
    ...(scopes.length > 0 ? { svc_resource_scopes: scopes.join(' ') } : {}),
    ...(requests.length > 0 ? { request_uris: requests } : {}),
    ...logoutMetadataOf(registration),
    ...(registration.jwks ? { jwks: registration.jwks } : {}),
    ...(registration.jwks_uri === null ? {} : { jwks_uri: registration.jwks_uri }),
    ...(registration.tls_client_auth_subject_dn === null
      ? {}
      : { tls_client_auth_subject_dn: registration.tls_client_auth_subject_dn }),
    ...(binding === 'dpop' ? { dpop_bound_access_tokens: true } : {}),
    ...(binding === 'mtls' ? { tls_client_certificate_bound_access_tokens: true } : {}),
    ...(registration.require_signed_request_object ? { require_signed_request_object: true } : {}),
    ...(registration.require_pkce ? { require_pkce: true } : {}),
    ...(lifetime === ID_TOKEN_LIFETIME ? {} : { svc_id_token_lifetime: lifetime }),
    ...(userinfoAlg === null ? {} : { userinfo_signed_response_alg: userinfoAlg }),
    ...(registration.response_mode === 'jwt' ? { response_modes: SIGNED_MODES } : {}),
  };
}

/**
 * Returns the part of the metadata that is about logout tokens (OpenID Connect Back-Channel Logout
 * §2.2).
 */
function logoutMetadataOf(registration: Registration): Record<string, unknown> {
  const { backchannel_logout_uri: uri } = registration;
  return {
    ...(uri === null ? {} : { backchannel_logout_uri: uri }),
    ...(registration.backchannel_logout_session_required
      ? { backchannel_logout_session_required: true }
      : {}),
    ...(registration.backchannel_logout_at_session_end
      ? { backchannel_logout_at_session_end: true }
      : {}),
  };
}

/** The metadata that {@link metadataOf} returns. */
interface Metadata {
  readonly client_name?: string;
  readonly application_type?: 'web' | 'native';
  readonly grant_types?: readonly string[];
  readonly redirect_uris?: readonly string[];
  readonly post_logout_redirect_uris?: readonly string[];
  readonly initiate_login_uri?: string;
  readonly token_endpoint_auth_method?: Registration['auth_method'];
  readonly svc_profile?: 'fapi2';
  readonly svc_resource_scopes?: string;
  readonly request_uris?: readonly string[];
  readonly backchannel_logout_uri?: string;
  readonly backchannel_logout_session_required?: boolean;
  readonly backchannel_logout_at_session_end?: boolean;
  readonly jwks?: Registration['jwks'];
  readonly jwks_uri?: string;
  readonly tls_client_auth_subject_dn?: string;
  readonly dpop_bound_access_tokens?: boolean;
  readonly tls_client_certificate_bound_access_tokens?: boolean;
  readonly require_signed_request_object?: boolean;
  readonly require_pkce?: boolean;
  readonly svc_id_token_lifetime?: number;
  readonly userinfo_signed_response_alg?: Registration['userinfo_signed_response_alg'];
  readonly response_modes?: readonly string[];
}

/**
 * Converts stored client metadata back to the registration from which {@link metadataOf} made it.
 */
export function registrationOf(kept: Readonly<Record<string, unknown>>): Registration {
  const metadata: Metadata = kept;
  return {
    name: metadata.client_name ?? '',
    type: typeOf(metadata),
    profile: metadata.svc_profile ?? null,
    grant_types: metadata.grant_types ?? [],
    auth_method: metadata.token_endpoint_auth_method ?? 'client_secret_basic',
    redirect_uris: metadata.redirect_uris ?? [],
    post_logout_redirect_uris: metadata.post_logout_redirect_uris ?? [],
    initiate_login_uri: metadata.initiate_login_uri ?? null,
    request_uris: metadata.request_uris ?? [],
    backchannel_logout_uri: metadata.backchannel_logout_uri ?? null,
    backchannel_logout_session_required: metadata.backchannel_logout_session_required ?? false,
    backchannel_logout_at_session_end: metadata.backchannel_logout_at_session_end ?? false,
    scopes: metadata.svc_resource_scopes?.split(' ') ?? [],
    jwks: metadata.jwks ?? null,
    jwks_uri: metadata.jwks_uri ?? null,
    tls_client_auth_subject_dn: metadata.tls_client_auth_subject_dn ?? null,
    sender_constraint: bindingOf(metadata),
    require_signed_request_object: metadata.require_signed_request_object ?? false,
    require_pkce: metadata.require_pkce ?? false,
    id_token_lifetime_seconds: metadata.svc_id_token_lifetime ?? ID_TOKEN_LIFETIME,
    userinfo_signed_response_alg: metadata.userinfo_signed_response_alg ?? null,
    response_mode: metadata.response_modes === undefined ? null : 'jwt',
  };
}

/**
 * Returns the type of an application from its metadata. The type is not stored, because the
 * application type, the grant types and the authentication method determine it.
 */
function typeOf(metadata: Metadata): ApplicationType {
  if (metadata.application_type === 'native') return 'native';
  if (metadata.grant_types?.includes('client_credentials')) return 'service';
  return metadata.token_endpoint_auth_method === 'none' ? 'spa' : 'web';
}

function bindingOf(metadata: Metadata): Registration['sender_constraint'] {
  if (metadata.dpop_bound_access_tokens) return 'dpop';
  return metadata.tls_client_certificate_bound_access_tokens ? 'mtls' : null;
}
