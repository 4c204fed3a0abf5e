import { z } from 'zod';

/** A parameter that may occur several times in a form (RFC 8707 §2). */
const repeatable = z.union([z.string(), z.array(z.string())]).optional();

/** The parameters by which a client authenticates in a form (RFC 6749 §2.3.1, RFC 7521 §4.2). */
const CLIENT_PROOF = {
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  client_assertion_type: z.string().optional(),
  client_assertion: z.string().optional(),
};

/**
 * The body of the token endpoint. Each grant type has parameters of its own, so other members are
 * allowed.
 */
const TOKEN_FORM = z
  .looseObject({
    grant_type: z.string(),
    ...CLIENT_PROOF,
    code: z.string().optional(),
    code_verifier: z.string().optional(),
    redirect_uri: z.string().optional(),
    device_code: z.string().optional(),
    scope: z.string().optional(),
    resource: repeatable,
    subject_token: z.string().optional(),
    subject_token_type: z.string().optional(),
    assertion: z.string().optional(),
    state: z.string().optional(),
  })
  .meta({ id: 'TokenRequest' });

const TOKEN = z
  .looseObject({
    access_token: z.string(),
    token_type: z.string(),
    expires_in: z.int(),
    scope: z.string().optional(),
    id_token: z.string().optional(),
    issued_token_type: z.string().optional(),
  })
  .meta({ id: 'TokenResponse' });

const AUTHORIZATION_FORM = z
  .looseObject({
    ...CLIENT_PROOF,
    response_type: z.string().optional(),
    redirect_uri: z.string().optional(),
    scope: z.string().optional(),
    state: z.string().optional(),
    nonce: z.string().optional(),
    code_challenge: z.string().optional(),
    code_challenge_method: z.string().optional(),
    resource: repeatable,
    request: z.string().optional(),
  })
  .meta({ id: 'AuthorizationRequest' });

const TOKEN_TO_EXAMINE = z.looseObject({
  ...CLIENT_PROOF,
  token: z.string(),
  token_type_hint: z.string().optional(),
});

const INTROSPECTION = z
  .looseObject({
    active: z.boolean(),
    sub: z.string().optional(),
    client_id: z.string().optional(),
    scope: z.string().optional(),
    exp: z.int().optional(),
    email: z.string().optional(),
    hardware_verified: z.boolean().optional(),
    hardware_aaguid: z.string().nullable().optional(),
  })
  .meta({ id: 'Introspection' });

/** The metadata of a client (RFC 7591 §2). */
const CLIENT_METADATA = z
  .looseObject({
    redirect_uris: z.array(z.string()).optional(),
    client_name: z.string().optional(),
    token_endpoint_auth_method: z.string().optional(),
    grant_types: z.array(z.string()).optional(),
    response_types: z.array(z.string()).optional(),
    scope: z.string().optional(),
    jwks_uri: z.string().optional(),
    jwks: z.looseObject({}).optional(),
  })
  .meta({ id: 'ClientMetadata' });

const CLIENT_INFORMATION = CLIENT_METADATA.extend({
  client_id: z.string(),
  client_secret: z.string().optional(),
  registration_access_token: z.string().optional(),
  registration_client_uri: z.string().optional(),
}).meta({ id: 'ClientInformation' });

const USER_CLAIMS = z
  .looseObject({ sub: z.string(), email: z.string().optional(), name: z.string().optional() })
  .meta({ id: 'UserClaims' });

const JWKS = z
  .object({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string().optional() })) })
  .meta({ id: 'JsonWebKeySet' });

const METADATA = z.looseObject({ issuer: z.string(), jwks_uri: z.string() });

/**
 * The errors that any request of a client can get. The OAuth library also gives errors that our
 * catalogue does not have, such as `invalid_grant` and `authorization_pending`.
 */
const OF_CLIENT = ['invalid_request', 'invalid_client', 'unauthenticated'] as const;
const FAULTS = ['internal', 'unavailable'] as const;
const REFUSALS = [...OF_CLIENT, ...FAULTS] as const;

const userinfo = {
  answers: { 200: { 'application/json': USER_CLAIMS, 'application/jwt': 'text' } },
  refusals: ['unauthenticated', 'insufficient_scope', ...FAULTS],
  asks: { proof: 'accessToken' },
} as const;

/**
 * The descriptions of the OAuth routes for `/openapi.json`. They are only for readers, because
 * `oidc-provider` itself reads and checks the parameters.
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
    answers: { 201: z.object({ request_uri: z.string(), expires_in: z.int() }) },
    refusals: REFUSALS,
    asks: { body: AUTHORIZATION_FORM, proof: 'client' },
  },
  device: {
    answers: {
      200: z.object({
        device_code: z.string(),
        user_code: z.string(),
        verification_uri: z.string(),
        verification_uri_complete: z.string(),
        expires_in: z.int(),
        interval: z.int(),
      }),
    },
    refusals: REFUSALS,
    asks: {
      body: z.looseObject({ ...CLIENT_PROOF, scope: z.string().optional() }),
      proof: 'client',
    },
  },
  challenge: {
    answers: {
      200: z.object({
        state: z.string(),
        publicKey: z.looseObject({ challenge: z.string(), rpId: z.string() }),
      }),
    },
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
    asks: {
      ...userinfo.asks,
      body: z.looseObject({ access_token: z.string().optional() }).optional(),
    },
  },
  register: {
    answers: { 201: CLIENT_INFORMATION },
    refusals: ['invalid_request', 'limit_reached', ...FAULTS],
    asks: { body: CLIENT_METADATA },
  },
  readClient: {
    answers: { 200: CLIENT_INFORMATION },
    refusals: ['unauthenticated', ...FAULTS],
    asks: { proof: 'registrationToken' },
  },
  updateClient: {
    answers: { 200: CLIENT_INFORMATION },
    refusals: ['unauthenticated', ...FAULTS],
    asks: { body: CLIENT_METADATA, proof: 'registrationToken' },
  },
  removeClient: {
    answers: { 204: null },
    refusals: ['unauthenticated', ...FAULTS],
    asks: { proof: 'registrationToken' },
  },
  metadata: { answers: { 200: METADATA } },
  resourceMetadata: {
    answers: {
      200: z.looseObject({ resource: z.string(), authorization_servers: z.array(z.string()) }),
    },
  },
  jwks: { answers: { 200: { 'application/jwk-set+json': JWKS, 'application/json': JWKS } } },
} as const;
