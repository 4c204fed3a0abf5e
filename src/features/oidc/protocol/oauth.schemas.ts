import { z } from 'zod';

/** A parameter that may occur several times in a form (RFC 8707 §2). */
const repeatable = z.union([z.string(), z.array(z.string())]).optional();

const text = z.string().optional();

/** The parameters by which a client authenticates in a form (RFC 6749 §2.3.1, RFC 7521 §4.2). */
const CLIENT_PROOF = {
  client_id: text.describe('The id of the client, unless a header names it.'),
  client_secret: text.describe('The secret, for `client_secret_post`.'),
  client_assertion_type: text.describe('`urn:ietf:params:oauth:client-assertion-type:jwt-bearer`.'),
  client_assertion: text.describe('The signed assertion, for `private_key_jwt` (RFC 7523).'),
};

const RESOURCE = 'The URL of the API for which the token is (RFC 8707).';
const SCOPE = 'The scopes, separated by spaces.';

/**
 * The body of the token endpoint. Each grant type has parameters of its own, so other members are
 * allowed.
 */
const TOKEN_FORM = z
  .looseObject({
    grant_type: z.string().describe('The grant type (RFC 6749 §4).'),
    ...CLIENT_PROOF,
    code: text.describe('The code, for `authorization_code`.'),
    code_verifier: text.describe('The verifier of PKCE (RFC 7636).'),
    redirect_uri: text.describe('The URL to which the code came.'),
    device_code: text.describe('The device code (RFC 8628).'),
    scope: text.describe(SCOPE),
    resource: repeatable.describe(RESOURCE),
    subject_token: text.describe('The token to exchange (RFC 8693).'),
    subject_token_type: text.describe('The type of the token to exchange.'),
    assertion: text.describe('The assertion of the security key, for the FIDO2 grant.'),
    state: text.describe('The `state` of the challenge, for the FIDO2 grant.'),
  })
  .meta({ id: 'TokenRequest', description: 'A request for tokens.' });

const TOKEN = z
  .looseObject({
    access_token: z.string().describe('The access token.'),
    token_type: z.string().describe('`Bearer` or `DPoP`.'),
    expires_in: z.int().describe('The seconds until it expires.'),
    scope: text.describe(SCOPE),
    id_token: text.describe('The ID token, for the scope `openid`.'),
    issued_token_type: text.describe('The type of an exchanged token (RFC 8693).'),
  })
  .meta({ id: 'TokenResponse', description: 'The issued tokens (RFC 6749 §5.1).' });

const AUTHORIZATION_FORM = z
  .looseObject({
    ...CLIENT_PROOF,
    response_type: text.describe('`code`.'),
    redirect_uri: text.describe('The URL to which the code goes.'),
    scope: text.describe(SCOPE),
    state: text.describe('A text that comes back with the code.'),
    nonce: text.describe('A text that comes back in the ID token.'),
    code_challenge: text.describe('The challenge of PKCE (RFC 7636).'),
    code_challenge_method: text.describe('`S256`.'),
    resource: repeatable.describe(RESOURCE),
    request: text.describe('The request as a signed object (RFC 9101).'),
  })
  .meta({ id: 'AuthorizationRequest', description: 'An authorization request (RFC 9126 §2.1).' });

const PUSHED = z
  .object({
    request_uri: z.string().describe('The name of the request, for the authorization endpoint.'),
    expires_in: z.int().describe('The seconds until it expires.'),
  })
  .describe('A pushed authorization request (RFC 9126 §2.2).');

const DEVICE_FORM = z
  .looseObject({ ...CLIENT_PROOF, scope: text.describe(SCOPE) })
  .describe('A request for a device code (RFC 8628 §3.1).');

const DEVICE_CODE = z
  .object({
    device_code: z.string().describe('The code with which the device asks for its token.'),
    user_code: z.string().describe('The code that the user types.'),
    verification_uri: z.string().describe('The URL at which the user types it.'),
    verification_uri_complete: z.string().describe('The same URL with the code.'),
    expires_in: z.int().describe('The seconds until the codes expire.'),
    interval: z.int().describe('The seconds between two requests of the device.'),
  })
  .describe('The codes of a device (RFC 8628 §3.2).');

const CHALLENGE = z
  .object({
    state: z.string().describe('The state to send back with the assertion.'),
    publicKey: z
      .looseObject({
        challenge: z.string().describe('The challenge, in base64url.'),
        rpId: z.string().describe('The domain of the service.'),
      })
      .describe('The options for an assertion (WebAuthn Level 3 §5.5).'),
  })
  .describe('A challenge for the FIDO2 grant.');

const TOKEN_TO_EXAMINE = z
  .looseObject({
    ...CLIENT_PROOF,
    token: z.string().describe('The token.'),
    token_type_hint: text.describe('The kind of the token.'),
  })
  .meta({ id: 'TokenToExamine', description: 'A token to introspect or to revoke.' });

const INTROSPECTION = z
  .looseObject({
    active: z.boolean().describe('True if the token is valid.'),
    sub: text.describe('The id of the user.'),
    client_id: text.describe('The client that got the token.'),
    scope: text.describe(SCOPE),
    exp: z.int().optional().describe('The time at which it expires, in seconds since 1970.'),
    email: text.describe('The address of the user.'),
    hardware_verified: z
      .boolean()
      .optional()
      .describe('True if a security key verified the login.'),
    hardware_aaguid: z.string().nullable().optional().describe('The AAGUID of the security key.'),
  })
  .meta({ id: 'Introspection', description: 'The state of a token (RFC 7662 §2.2).' });

/** The schema of the metadata of a client (RFC 7591 §2), for `/openapi.json`. */
const CLIENT_METADATA = z
  .looseObject({
    redirect_uris: z
      .array(z.string())
      .optional()
      .describe('The URLs to which a sign-in may lead back.'),
    client_name: text.describe('The name that people see.'),
    token_endpoint_auth_method: text.describe('The method by which the client authenticates.'),
    grant_types: z.array(z.string()).optional().describe('The grant types that it may use.'),
    response_types: z.array(z.string()).optional().describe('The response types, such as `code`.'),
    scope: text.describe(SCOPE),
    jwks_uri: text.describe('The URL of its public keys.'),
    jwks: z.looseObject({}).optional().describe('Its public keys (RFC 7517).'),
  })
  .meta({ id: 'ClientMetadata', description: 'The metadata of a client (RFC 7591 §2).' });

const CLIENT_INFORMATION = CLIENT_METADATA.extend({
  client_id: z.string().describe('The id of the client.'),
  client_secret: text.describe('The secret of the client, once.'),
  registration_access_token: text.describe('The token that manages the registration.'),
  registration_client_uri: text.describe('The URL of the registration.'),
}).meta({ id: 'ClientInformation', description: 'A registered client (RFC 7591 §3.2.1).' });

const USER_CLAIMS = z
  .looseObject({
    sub: z.string().describe('The id of the user.'),
    email: text.describe('The address of the user.'),
    name: text.describe('The name of the user.'),
  })
  .meta({ id: 'UserClaims', description: 'Claims about the user.' });

const USERINFO_FORM = z
  .looseObject({ access_token: text.describe('The access token, unless a header has it.') })
  .optional()
  .describe('The access token. The body may be left out.');

const JWKS = z
  .object({
    keys: z
      .array(
        z.looseObject({
          kty: z.string().describe('The type of the key.'),
          kid: text.describe('The id of the key.'),
        }),
      )
      .describe('The keys.'),
  })
  .meta({ id: 'JsonWebKeySet', description: 'Public keys (RFC 7517 §5).' });

const METADATA = z
  .looseObject({
    issuer: z.string().describe('The issuer.'),
    jwks_uri: z.string().describe('The URL of its public keys.'),
  })
  .meta({ id: 'IssuerMetadata', description: 'Metadata of an issuer (RFC 8414 §2).' });

const RESOURCE_METADATA = z
  .looseObject({
    resource: z.string().describe('The URL of the resource.'),
    authorization_servers: z.array(z.string()).describe('The issuers of its access tokens.'),
  })
  .describe('Metadata of a protected resource (RFC 9728 §2).');

/**
 * The errors that any request of a client can get. The OAuth library also gives errors that our
 * catalogue does not have, such as `invalid_grant` and `authorization_pending`.
 */
const OF_CLIENT = ['invalid_request', 'invalid_client', 'unauthenticated'] as const;
const FAULTS = ['internal', 'unavailable'] as const;
const OF_CLIENT_ID = { clientId: 'The id of the client.' } as const;
const REFUSALS = [...OF_CLIENT, ...FAULTS] as const;

const userinfo = {
  answers: { 200: { 'application/json': USER_CLAIMS, 'application/jwt': 'text' } },
  refusals: ['unauthenticated', 'insufficient_scope', ...FAULTS],
  asks: { proof: 'accessToken' },
} as const;

/**
 * The descriptions of the OAuth routes for `/openapi.json`. No request is validated by these
 * schemas, because `oidc-provider` itself reads and checks the parameters.
 */
export const OAUTH_ROUTES = {
  token: {
    answers: { 200: TOKEN },
    refusals: [
      ...REFUSALS,
      'kms_unavailable',
      'browser_required',
      'insufficient_user_authentication',
    ],
    asks: {
      body: TOKEN_FORM,
      proof: 'client',
      headers: { dpop: 'A proof of a key, to which the token is bound (RFC 9449).' },
    },
  },
  par: {
    answers: { 201: PUSHED },
    refusals: REFUSALS,
    asks: { body: AUTHORIZATION_FORM, proof: 'client' },
  },
  device: {
    answers: { 200: DEVICE_CODE },
    refusals: REFUSALS,
    asks: { body: DEVICE_FORM, proof: 'client' },
  },
  challenge: {
    answers: { 200: CHALLENGE },
    refusals: ['invalid_client', 'unauthorized_client', ...FAULTS],
  },
  introspect: {
    answers: {
      200: {
        'application/json': INTROSPECTION,
        'application/token-introspection+jwt': 'text',
      },
    },
    refusals: REFUSALS,
    asks: { body: TOKEN_TO_EXAMINE, proof: 'client' },
  },
  revoke: {
    // The response has an empty body.
    answers: { 200: { 'text/plain': 'text' } },
    refusals: REFUSALS,
    asks: { body: TOKEN_TO_EXAMINE, proof: 'client' },
  },
  userinfo,
  userinfoByPost: {
    ...userinfo,
    asks: { ...userinfo.asks, body: USERINFO_FORM },
  },
  register: {
    answers: { 201: CLIENT_INFORMATION },
    refusals: ['invalid_request', 'limit_reached', ...FAULTS],
    asks: { body: CLIENT_METADATA },
  },
  readClient: {
    answers: { 200: CLIENT_INFORMATION },
    refusals: ['unauthenticated', ...FAULTS],
    asks: { path: OF_CLIENT_ID, proof: 'registrationToken' },
  },
  updateClient: {
    answers: { 200: CLIENT_INFORMATION },
    refusals: ['unauthenticated', ...FAULTS],
    asks: { path: OF_CLIENT_ID, body: CLIENT_METADATA, proof: 'registrationToken' },
  },
  removeClient: {
    answers: { 204: null },
    refusals: ['unauthenticated', ...FAULTS],
    asks: { path: OF_CLIENT_ID, proof: 'registrationToken' },
  },
  metadata: { answers: { 200: METADATA } },
  resourceMetadata: {
    answers: { 200: RESOURCE_METADATA },
  },
  jwks: { answers: { 200: { 'application/jwk-set+json': JWKS, 'application/json': JWKS } } },
} as const;
