import { ENDPOINT_PATHS } from '#domain/oauth/applications/endpoints.js';
import { AAL3 } from '#domain/sessions/session.js';
import { CLAIMS_OF_SCOPES } from '../protocol/claims.js';
import { CLIENT_ALGORITHMS, EXTRA_METADATA, OUR_ALGORITHMS } from '../protocol/client-metadata.js';
import type { Configuration } from '../protocol/library.js';
import { OIDC_SCOPES, OWN_SCOPES } from '../protocol/scopes.js';
import { USER_CODE } from '../protocol/user-code.js';
import { LIFETIMES } from './lifetimes.js';

/** The ways in which an authorization response can be sent to the client (`response_mode`). */
export const RESPONSE_MODES = ['query', 'fragment', 'jwt', 'query.jwt', 'fragment.jwt'];

/**
 * Returns the endpoints whose URLs may be the audience of a client assertion, by which a client
 * authenticates at an endpoint. The token endpoint is always one of them (RFC 7523 §3). The
 * endpoint of pushed requests also accepts its own URL (RFC 9126 §2).
 *
 * @param route the OAuth library's name of the called endpoint
 */
export function assertionEndpoints(route: string): ('token' | 'pushed_authorization_request')[] {
  return route === 'pushed_authorization_request' ? ['token', route] : ['token'];
}

/** The options of the OAuth library that are the same in every deployment. */
export const FIXED: Configuration = {
  routes: ENDPOINT_PATHS,
  acrValues: [AAL3],
  scopes: [...OIDC_SCOPES, ...OWN_SCOPES],
  responseTypes: ['code'],
  subjectTypes: ['public'],
  claims: CLAIMS_OF_SCOPES,
  clientAuthMethods: ['private_key_jwt', 'client_secret_basic', 'client_secret_post', 'none'],
  clientDefaults: {
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_basic',
    id_token_signed_response_alg: 'RS256',
    // The mode form_post is left out, because it needs a script of the OAuth library, which our
    // Content-Security-Policy forbids.
    response_modes: RESPONSE_MODES,
  },
  enabledJWA: {
    clientAuthSigningAlgValues: [...CLIENT_ALGORITHMS],
    requestObjectSigningAlgValues: [...CLIENT_ALGORITHMS],
    dPoPSigningAlgValues: ['ES256', 'EdDSA', 'Ed25519', 'PS256'],
    idTokenSigningAlgValues: [...OUR_ALGORITHMS],
    userinfoSigningAlgValues: [...OUR_ALGORITHMS],
    authorizationSigningAlgValues: [...OUR_ALGORITHMS],
    introspectionSigningAlgValues: [...OUR_ALGORITHMS],
  },
  // There are no refresh tokens, because a new session needs a touch of the security key.
  issueRefreshToken: () => false,
  // Our own database ends tokens together with the session of the browser, so the OAuth library
  // need not end them.
  expiresWithSession: () => false,
  // If a client revokes a token, that token ends, but no other token of its grant. In all other
  // cases, such as the second use of a code, the whole grant ends.
  revokeGrantPolicy: ({ oidc }) => oidc.route !== 'revocation',
  // The ID token also contains the claims that its scopes select, for clients that never call
  // userinfo.
  conformIdTokenClaims: false,
  clientBasedCORS: () => true,
  allowOmittingSingleRegisteredRedirectUri: false,
  acceptQueryParamAccessTokens: false,
  fetchResponseBodyLimits: { jwks_uri: 64 * 1024, sector_identifier_uri: 64 * 1024 },
  formats: { bitsOfOpaqueRandomness: 256 },
  extraClientMetadata: { properties: [...EXTRA_METADATA] },
  ttl: {
    AuthorizationCode: LIFETIMES.authorizationCode,
    ClientCredentials: LIFETIMES.clientCredentials,
    Interaction: LIFETIMES.interaction,
    RegistrationAccessToken: LIFETIMES.registrationAccessToken,
  },
};

/** The features of the OAuth library that are the same in every deployment. */
export const FIXED_FEATURES = {
  devInteractions: { enabled: false },
  clientCredentials: { enabled: true },
  claimsParameter: { enabled: true },
  jwtIntrospection: { enabled: true },
  registration: { enabled: true },
  registrationManagement: { enabled: true, rotateRegistrationAccessToken: true },
  jwtUserinfo: { enabled: true },
  jwtResponseModes: { enabled: true },
  pushedAuthorizationRequests: { enabled: true },
  deviceFlow: { enabled: true, ...USER_CODE },
  // The controller in `logout/` renders the two pages of a logout, so the OAuth library renders
  // nothing.
  rpInitiatedLogout: { enabled: true, logoutSource: () => {}, postLogoutSuccessSource: () => {} },
} as const satisfies NonNullable<Configuration['features']>;
