import type { OUR_ALGORITHMS } from '../protocol/client-algorithms.js';
import { DEVICE_GRANT, FIDO2_GRANT, TOKEN_EXCHANGE_GRANT } from '../engine/configuration.js';
import { LIFETIMES } from '../engine/lifetimes.js';

/** How an application may prove who it is, where it can keep something to itself. */
export const AUTH_METHODS = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
] as const;

/** What each type of application is in the terms of the protocol; the first of its grant types is what it has unasked. */
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

/** A type of application. */
export type ApplicationType = keyof typeof TYPES;

/** An application as it is registered, every default in its place. The names are those of the API. */
export interface Registration {
  readonly name: string;
  readonly type: ApplicationType;
  readonly profile: 'fapi2' | null;
  readonly grant_types: readonly string[];
  readonly auth_method: (typeof AUTH_METHODS)[number] | 'none';
  readonly redirect_uris: readonly string[];
  readonly post_logout_redirect_uris: readonly string[];
  readonly request_uris: readonly string[];
  /** The scopes of its own resource servers, beside those of OpenID Connect. */
  readonly scopes: readonly string[];
  readonly jwks: { readonly keys: readonly object[] } | null;
  readonly jwks_uri: string | null;
  readonly tls_client_auth_subject_dn: string | null;
  /** What its access tokens are bound to. */
  readonly sender_constraint: 'dpop' | 'mtls' | null;
  readonly require_signed_request_object: boolean;
  /** Whether PKCE is demanded; of public applications and of the FAPI profile it always is. */
  readonly require_pkce: boolean;
  /** Seconds for which its ID tokens are good. */
  readonly id_token_lifetime_seconds: number;
  /** How userinfo answers are signed; null for plain JSON (OpenID Connect Core §5.3.2). */
  readonly userinfo_signed_response_alg: (typeof OUR_ALGORITHMS)[number] | null;
  /** `jwt` where every authorization response is signed. */
  readonly response_mode: 'jwt' | null;
}

/** A registration as people write it: what is missing or null is left to us. */
export type Wanted = Pick<Registration, 'name' | 'type'> & {
  readonly [Name in keyof Registration]?: Registration[Name] | null | undefined;
};

/**
 * Puts in what was not said. The FAPI profile wants a key in place of a secret, and tokens that are bound: to the client's
 * certificate where it has one, by DPoP elsewhere (FAPI 2.0 Security Profile §5.3.2.1).
 */
export function completed(wanted: Wanted): Registration {
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
    request_uris: wanted.request_uris ?? [],
    scopes: wanted.scopes ?? [],
    jwks: wanted.jwks ?? null,
    jwks_uri: wanted.jwks_uri ?? null,
    tls_client_auth_subject_dn: wanted.tls_client_auth_subject_dn ?? null,
    sender_constraint: wanted.sender_constraint ?? (isFapi ? binding : null),
    require_signed_request_object: wanted.require_signed_request_object ?? false,
    require_pkce: wanted.require_pkce ?? false,
    id_token_lifetime_seconds: wanted.id_token_lifetime_seconds ?? LIFETIMES.idToken,
    userinfo_signed_response_alg: wanted.userinfo_signed_response_alg ?? null,
    response_mode: wanted.response_mode ?? null,
  };
}

/** Whether an application authenticates with a certificate (RFC 8705 §2). */
export function usesCertificate(authMethod: Registration['auth_method']): boolean {
  return authMethod === 'tls_client_auth' || authMethod === 'self_signed_tls_client_auth';
}

/** Whether an application authenticates with a secret that it shares with us (RFC 6749 §2.3.1). */
export function usesSecret(authMethod: Registration['auth_method']): boolean {
  return authMethod === 'client_secret_basic' || authMethod === 'client_secret_post';
}
