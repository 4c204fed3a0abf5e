import type { Configuration } from 'oidc-provider';
import { AAL3 } from '#domain/sessions/session.js';
import { LIFETIMES } from './lifetimes.js';
import { CLAIMS_OF_SCOPES } from '../protocol/claims.js';
import { EXTRA_METADATA } from '../protocol/client-metadata.js';
import { OUR_ALGORITHMS, CLIENT_ALGORITHMS } from '../protocol/client-algorithms.js';
import { OIDC_SCOPES, OWN_SCOPES } from '../protocol/scopes.js';

/** How an answer may travel to a client. */
export const RESPONSE_MODES = ['query', 'fragment', 'jwt', 'query.jwt', 'fragment.jwt'];

/** Where the endpoints are. */
export const ROUTES = {
  authorization: '/oauth/authorize',
  pushed_authorization_request: '/oauth/par',
  token: '/oauth/token',
  device_authorization: '/oauth/device',
  code_verification: '/device',
  registration: '/oauth/register',
  introspection: '/oauth/introspect',
  revocation: '/oauth/revoke',
  userinfo: '/oauth/userinfo',
  jwks: '/oauth/jwks',
  end_session: '/oauth/logout',
} as const;

/** The grant types, beside the two that are registered. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const FIDO2_GRANT = 'urn:svc:params:oauth:grant-type:fido2';
export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** What of the library's configuration is the same in every deployment. */
export const FIXED: Configuration = {
  routes: ROUTES,
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
    // No form_post: it needs a script of the library's, which our Content-Security-Policy forbids.
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
  // A touch, not an old secret, starts a new session.
  issueRefreshToken: () => false,
  // What is issued hangs on our own session, whose end is its end.
  expiresWithSession: () => false,
  // Revoking a token ends that token; what else its grant gave goes on.
  revokeGrantPolicy: ({ oidc }) => oidc.route !== 'revocation',
  // What a scope stands for is in the ID token too, for clients that never ask userinfo.
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
