import { DEVICE_GRANT, FIDO2_GRANT, TOKEN_EXCHANGE_GRANT } from './grant-types.js';

/** The lifetime of an ID token, in seconds, if its application did not register another one. */
export const ID_TOKEN_LIFETIME = 300;

/** The methods by which a confidential application can authenticate. */
export const AUTH_METHODS = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
] as const;

/**
 * The types of application, each with its protocol settings. The first of the `grantTypes` is the
 * default of the type.
 */
export const TYPES = {
  web: {
    isNative: false,
    isPublic: false,
    grantTypes: ['authorization_code', TOKEN_EXCHANGE_GRANT],
  },
  spa: { isNative: false, isPublic: true, grantTypes: ['authorization_code'] },
  native: {
    isNative: true,
    isPublic: true,
    grantTypes: ['authorization_code', DEVICE_GRANT, FIDO2_GRANT],
  },
  service: { isNative: false, isPublic: false, grantTypes: ['client_credentials'] },
} as const;

/** A type of application: `web`, `spa` (single-page application), `native` or `service`. */
export type ApplicationType = keyof typeof TYPES;

/**
 * The registration of an application with all defaults filled in. The names are those of the API.
 */
export interface Registration {
  readonly name: string;
  readonly type: ApplicationType;
  readonly profile: 'fapi2' | null;
  readonly grant_types: readonly string[];
  readonly auth_method: (typeof AUTH_METHODS)[number] | 'none';
  readonly redirect_uris: readonly string[];
  readonly post_logout_redirect_uris: readonly string[];
  /** The URL at which a browser starts a sign-in to the application (OpenID Connect Core §4). */
  readonly initiate_login_uri: string | null;
  readonly request_uris: readonly string[];
  /** The URL to which logout tokens are sent (OpenID Connect Back-Channel Logout §2.2). */
  readonly backchannel_logout_uri: string | null;
  /** True if every logout token must name the session that ended. */
  readonly backchannel_logout_session_required: boolean;
  /** True if the application also gets a logout token if a session expires without a logout. */
  readonly backchannel_logout_at_session_end: boolean;
  /** The scopes that the application defines for its own resource servers. */
  readonly scopes: readonly string[];
  readonly jwks: { readonly keys: readonly object[] } | null;
  readonly jwks_uri: string | null;
  readonly tls_client_auth_subject_dn: string | null;
  /** The way in which access tokens are bound to a key of the application; null for none. */
  readonly sender_constraint: 'dpop' | 'mtls' | null;
  readonly require_signed_request_object: boolean;
  /**
   * True if the application requires PKCE (RFC 7636). Public applications and those of the FAPI
   * profile always need PKCE, even if this is false.
   */
  readonly require_pkce: boolean;
  /** The lifetime of ID tokens in seconds. */
  readonly id_token_lifetime_seconds: number;
  /**
   * The algorithm that signs userinfo responses; null for plain JSON (OpenID Connect Core §5.3.2).
   */
  readonly userinfo_signed_response_alg: 'ES256' | 'RS256' | null;
  /**
   * `jwt` if every authorization response must be a signed JWT (JARM); null if each request chooses
   * by its parameter `response_mode`.
   */
  readonly response_mode: 'jwt' | null;
}

/** A registration as a user writes it. A field that is missing or null gets its default. */
export type WantedRegistration = Pick<Registration, 'name' | 'type'> & {
  readonly [Name in keyof Registration]?: Registration[Name] | null | undefined;
};

/**
 * Fills in the defaults of a registration. The FAPI profile requires a key instead of a secret. It
 * also requires tokens that are bound to the client's certificate or, without one, by DPoP (FAPI
 * 2.0 Security Profile §5.3.2.1).
 */
export function completed(wanted: WantedRegistration): Registration {
  const { isPublic, grantTypes } = TYPES[wanted.type];
  const isFapi = wanted.profile === 'fapi2';
  const ordinary = isFapi ? 'private_key_jwt' : 'client_secret_basic';
  const authMethod = wanted.auth_method ?? (isPublic ? 'none' : ordinary);
  const binding = usesCertificate(authMethod) ? 'mtls' : 'dpop';
  return {
    name: wanted.name,
    type: wanted.type,
    profile: wanted.profile ?? null,
    grant_types: wanted.grant_types ?? [grantTypes[0]],
    auth_method: authMethod,
    redirect_uris: wanted.redirect_uris ?? [],
    post_logout_redirect_uris: wanted.post_logout_redirect_uris ?? [],
    initiate_login_uri: wanted.initiate_login_uri ?? null,
    request_uris: wanted.request_uris ?? [],
    backchannel_logout_uri: wanted.backchannel_logout_uri ?? null,
    backchannel_logout_session_required: wanted.backchannel_logout_session_required ?? false,
    backchannel_logout_at_session_end: wanted.backchannel_logout_at_session_end ?? false,
    scopes: wanted.scopes ?? [],
    jwks: wanted.jwks ?? null,
    jwks_uri: wanted.jwks_uri ?? null,
    tls_client_auth_subject_dn: wanted.tls_client_auth_subject_dn ?? null,
    sender_constraint: wanted.sender_constraint ?? (isFapi ? binding : null),
    require_signed_request_object: wanted.require_signed_request_object ?? false,
    require_pkce: wanted.require_pkce ?? false,
    id_token_lifetime_seconds: wanted.id_token_lifetime_seconds ?? ID_TOKEN_LIFETIME,
    userinfo_signed_response_alg: wanted.userinfo_signed_response_alg ?? null,
    response_mode: wanted.response_mode ?? null,
  };
}

/** Returns true if an application authenticates with a certificate (RFC 8705 §2). */
export function usesCertificate(authMethod: Registration['auth_method']): boolean {
  return authMethod === 'tls_client_auth' || authMethod === 'self_signed_tls_client_auth';
}

/** Returns true if an application authenticates with a shared secret (RFC 6749 §2.3.1). */
export function usesSecret(authMethod: Registration['auth_method']): boolean {
  return authMethod === 'client_secret_basic' || authMethod === 'client_secret_post';
}
