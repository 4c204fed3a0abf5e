import { z } from 'zod';
import { VISIBLE_LINE, isSingleLine, isVisibleLine } from '#platform/text/single-line.js';
import {
  DEVICE_GRANT,
  FIDO2_GRANT,
  TOKEN_EXCHANGE_GRANT,
} from '#domain/oauth/applications/grant-types.js';
import { OUR_ALGORITHMS } from '../protocol/client-metadata.js';
import { OIDC_SCOPES, isOwnScope } from '../protocol/scopes.js';
import { AUTH_METHODS } from '#domain/oauth/applications/registration.js';
import { NAME, SETTINGS, TYPE } from './setting-texts.js';

/**
 * The seconds for which an old secret stays valid after the creation of a new secret: a day by
 * default, 30 days at most.
 */
const OVERLAP = { usual: 86_400, longest: 30 * 86_400 } as const;

/** The largest number of days for which a new secret can be valid. */
const MOST_SECRET_DAYS = 730;

/**
 * The limits of an ID token's lifetime in seconds. The lifetime is short, because a verifier that
 * does not ask this service accepts a token until it expires.
 */
const ID_TOKEN_SECONDS = { shortest: 60, longest: 3600 } as const;

const GRANTS = [
  'authorization_code',
  'client_credentials',
  DEVICE_GRANT,
  TOKEN_EXCHANGE_GRANT,
  FIDO2_GRANT,
] as const;

const TAKEN_SCOPES: ReadonlySet<string> = new Set([...OIDC_SCOPES, 'offline_access']);

const address = z.string().min(1).max(2048);
const addresses = (most: number) =>
  z.array(address).max(most, `must have at most ${most} URLs`).nullish();

/**
 * The name in an update of an application. Invisible characters are refused later, because the
 * application may already have such a name and may keep it.
 */
const knownName = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(64, 'must have at most 64 characters')
  .refine(isSingleLine, VISIBLE_LINE);

const name = knownName.refine(isVisibleLine, VISIBLE_LINE);

/** One scope of OAuth (RFC 6749 §3.3). */
const scope = z
  .string()
  .max(128)
  .regex(/^[!#-[\]-~]+$/, 'must be a scope: one word of ASCII')
  .refine((one) => !isOwnScope(one), 'must not be a scope of this service')
  .refine((one) => !TAKEN_SCOPES.has(one), 'is a scope of OpenID Connect, which every client has');

const settings = {
  profile: z.enum(['fapi2']).nullish().describe(SETTINGS.profile),
  grant_types: z
    .array(z.enum(GRANTS))
    .min(1)
    .max(GRANTS.length)
    .nullish()
    .describe(SETTINGS.grant_types),
  auth_method: z
    .enum([...AUTH_METHODS, 'none'])
    .nullish()
    .describe(SETTINGS.auth_method),
  redirect_uris: addresses(20).describe(SETTINGS.redirect_uris),
  post_logout_redirect_uris: addresses(20).describe(SETTINGS.post_logout_redirect_uris),
  initiate_login_uri: address.nullish().describe(SETTINGS.initiate_login_uri),
  request_uris: addresses(10).describe(SETTINGS.request_uris),
  backchannel_logout_uri: address.nullish().describe(SETTINGS.backchannel_logout_uri),
  backchannel_logout_session_required: z
    .boolean()
    .nullish()
    .describe(SETTINGS.backchannel_logout_session_required),
  backchannel_logout_at_session_end: z
    .boolean()
    .nullish()
    .describe(SETTINGS.backchannel_logout_at_session_end),
  scopes: z.array(scope).max(50).nullish().describe(SETTINGS.scopes),
  // The OAuth library checks the keys later.
  jwks: z
    .object({
      keys: z
        .array(z.looseObject({}))
        .min(1)
        .max(10)
        .describe('The public keys as JSON Web Keys (RFC 7517).'),
    })
    .nullish()
    .describe(SETTINGS.jwks),
  jwks_uri: address.nullish().describe(SETTINGS.jwks_uri),
  tls_client_auth_subject_dn: z
    .string()
    .min(1)
    .max(1024)
    .nullish()
    .describe(SETTINGS.tls_client_auth_subject_dn),
  sender_constraint: z.enum(['dpop', 'mtls']).nullish().describe(SETTINGS.sender_constraint),
  require_signed_request_object: z
    .boolean()
    .nullish()
    .describe(SETTINGS.require_signed_request_object),
  require_pkce: z.boolean().nullish().describe(SETTINGS.require_pkce),
  id_token_lifetime_seconds: z
    .int()
    .min(ID_TOKEN_SECONDS.shortest)
    .max(ID_TOKEN_SECONDS.longest)
    .nullish()
    .describe(SETTINGS.id_token_lifetime_seconds),
  userinfo_signed_response_alg: z
    .enum(OUR_ALGORITHMS)
    .nullish()
    .describe(SETTINGS.userinfo_signed_response_alg),
  response_mode: z.enum(['jwt']).nullish().describe(SETTINGS.response_mode),
};

/**
 * An OAuth client in the body of `POST /api/v1/applications`. A null or missing member gets its
 * default; an unknown member is refused.
 */
const CLIENT = z
  .strictObject({
    name: name.describe(NAME),
    type: z.enum(['web', 'spa', 'native', 'service']).describe(TYPE),
    ...settings,
  })
  .meta({ id: 'ClientRegistration', description: 'An OAuth client to register.' });
/** A client in the body of `POST /api/v1/applications` after validation, as the handler gets it. */
export type NewApplication = z.output<typeof CLIENT>;

/** A Kubernetes cluster in the body of `POST /api/v1/applications`. */
const CLUSTER = z
  .strictObject({
    name: name.describe('The name of the cluster.'),
    type: z.literal('kubernetes').describe('A Kubernetes cluster.'),
    resource: address.describe('The audience of the tokens for its API server.'),
  })
  .meta({ id: 'ClusterRegistration', description: 'A Kubernetes cluster to register.' });
/**
 * A cluster in the body of `POST /api/v1/applications` after validation, as the handler gets it.
 */
export type NewClusterBody = z.output<typeof CLUSTER>;

/** The body of `POST /api/v1/applications`: an OAuth client or a Kubernetes cluster. */
export const REGISTER = z
  .discriminatedUnion('type', [CLIENT, CLUSTER], {
    error: 'must be web, spa, native, service or kubernetes',
  })
  .describe('An OAuth client or a Kubernetes cluster. A null or missing member gets its default.');

/**
 * The body of `PATCH /api/v1/applications/{id}`: a missing member stays as it is, and null resets
 * it to the default. The type cannot change.
 */
export const UPDATE = z
  .strictObject({ name: knownName.optional().describe(NAME), ...settings })
  .meta({
    id: 'ClientChange',
    description:
      'The members to change. A missing member stays as it is, and null resets it to the default.',
  });
/** The body of `PATCH /api/v1/applications/{id}` after validation, as the handler gets it. */
export type ApplicationUpdate = z.output<typeof UPDATE>;

/** The query of `GET /api/v1/applications`. */
export const PAGE = z.object({
  after: z
    .string()
    .max(64)
    .regex(/^[\w-]*$/)
    .default('')
    .describe('The `next` of the page before.'),
});
/** The query of `GET /api/v1/applications` after validation, as the handler gets it. */
export type ApplicationsPage = z.output<typeof PAGE>;

/** The body of `POST /api/v1/applications/{id}/secrets`, which may be absent. */
export const ROTATE = z
  .strictObject({
    expires_previous_in_seconds: z
      .int()
      .min(0)
      .max(OVERLAP.longest)
      .default(OVERLAP.usual)
      .describe('The seconds for which the secrets before stay valid.'),
    expires_in_days: z
      .int()
      .min(1)
      .max(MOST_SECRET_DAYS)
      .exactOptional()
      .describe('The days for which the new secret is valid; without them it does not expire.'),
  })
  .prefault({})
  .describe('The times of the new secret and of those before.');
/**
 * The body of `POST /api/v1/applications/{id}/secrets` after validation, as the handler gets it.
 */
export type SecretRotation = z.output<typeof ROTATE>;

/**
 * The path parameter of an application. Any text is accepted, so that an id in another format gets
 * 404, and not 400.
 */
export const APPLICATION_ID = z.object({
  id: z.string().describe('The `client_id` of the application.'),
});

/**
 * The path parameters that name an application, and a logout notice that could not be delivered to
 * it.
 */
export const NOTICE_ID = APPLICATION_ID.extend({
  noticeId: z.string().describe('The id of the logout notice.'),
});

/** The path parameters that name an application and a secret of the application. */
export const SECRET_ID = APPLICATION_ID.extend({
  secretId: z.string().describe('The id of the secret.'),
});

/** The path parameters that name an application, and a signal that could not be delivered to it. */
export const SIGNAL_ID = APPLICATION_ID.extend({
  signalId: z.string().describe('The id of the signal.'),
});

/**
 * The body of `PUT /api/v1/applications/{id}/signals`: the format in which the events name a
 * person.
 */
export const ALLOW_SIGNALS = z
  .strictObject({
    subject_format: z
      .enum(['iss_sub', 'email'])
      .default('iss_sub')
      .describe('The format in which events name a person (RFC 9493).'),
  })
  .describe('How the events name people.');
