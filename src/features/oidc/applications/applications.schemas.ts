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

/**
 * The seconds for which an old secret stays valid after a new one was created: a day by default, 30
 * days at most.
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
  z.array(address).max(most, `must have at most ${most} addresses`).nullish();

/**
 * The name in an update of an application. Invisible characters are not refused here, because the
 * application may already have that name.
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
  profile: z.enum(['fapi2']).nullish(),
  grant_types: z.array(z.enum(GRANTS)).min(1).max(GRANTS.length).nullish(),
  auth_method: z.enum([...AUTH_METHODS, 'none']).nullish(),
  redirect_uris: addresses(20),
  post_logout_redirect_uris: addresses(20),
  initiate_login_uri: address.nullish(),
  request_uris: addresses(10),
  backchannel_logout_uri: address.nullish(),
  backchannel_logout_session_required: z.boolean().nullish(),
  backchannel_logout_at_session_end: z.boolean().nullish(),
  scopes: z.array(scope).max(50).nullish(),
  /** The public keys of the client. They are checked later by the OAuth library. */
  jwks: z.object({ keys: z.array(z.looseObject({})).min(1).max(10) }).nullish(),
  jwks_uri: address.nullish(),
  tls_client_auth_subject_dn: z.string().min(1).max(1024).nullish(),
  sender_constraint: z.enum(['dpop', 'mtls']).nullish(),
  require_signed_request_object: z.boolean().nullish(),
  require_pkce: z.boolean().nullish(),
  id_token_lifetime_seconds: z
    .int()
    .min(ID_TOKEN_SECONDS.shortest)
    .max(ID_TOKEN_SECONDS.longest)
    .nullish(),
  userinfo_signed_response_alg: z.enum(OUR_ALGORITHMS).nullish(),
  response_mode: z.enum(['jwt']).nullish(),
};

/**
 * An OAuth client in the body of `POST /api/v1/applications`. A null or missing member gets its
 * default; an unknown member is refused.
 */
const CLIENT = z.strictObject({
  name,
  type: z.enum(['web', 'spa', 'native', 'service']),
  ...settings,
});
/** A client in the body of `POST /api/v1/applications` after validation. */
export type NewApplication = z.output<typeof CLIENT>;

/** A Kubernetes cluster in the body of `POST /api/v1/applications`. */
const CLUSTER = z.strictObject({ name, type: z.literal('kubernetes'), resource: address });
/** A cluster in the body of `POST /api/v1/applications` after validation. */
export type NewClusterBody = z.output<typeof CLUSTER>;

/** The body of `POST /api/v1/applications`: an OAuth client or a Kubernetes cluster. */
export const REGISTER = z.discriminatedUnion('type', [CLIENT, CLUSTER], {
  error: 'must be web, spa, native, service or kubernetes',
});

/**
 * The body of `PATCH /api/v1/applications/{id}`: a missing member stays as it is, and null resets
 * it to the default. The type cannot change.
 */
export const UPDATE = z.strictObject({ name: knownName.optional(), ...settings });
/** The body of `PATCH /api/v1/applications/{id}` after validation. */
export type ApplicationUpdate = z.output<typeof UPDATE>;

/** The query of `GET /api/v1/applications`. */
export const PAGE = z.object({
  /** The value of `next` in the previous page. */
  after: z
    .string()
    .max(64)
    .regex(/^[\w-]*$/)
    .default(''),
});
/** The query of `GET /api/v1/applications` after validation. */
export type ApplicationsPage = z.output<typeof PAGE>;

/** The body of `POST /api/v1/applications/{id}/secrets`, which may be absent. */
export const ROTATE = z
  .strictObject({
    expires_previous_in_seconds: z.int().min(0).max(OVERLAP.longest).default(OVERLAP.usual),
    /** The days for which the new secret is valid; without this member it does not expire. */
    expires_in_days: z.int().min(1).max(MOST_SECRET_DAYS).exactOptional(),
  })
  .prefault({});
/** The body of `POST /api/v1/applications/{id}/secrets` after validation. */
export type SecretRotation = z.output<typeof ROTATE>;

/** The path parameter of an application. An id in another format gets 404, and not 400. */
export const APPLICATION_ID = z.object({ id: z.string() });

/**
 * The path parameters of an application and of one of its logout notices that could not be
 * delivered.
 */
export const NOTICE_ID = z.object({ id: z.string(), noticeId: z.string() });

/** The path parameters of an application and of one of its secrets. */
export const SECRET_ID = z.object({ id: z.string(), secretId: z.string() });

/**
 * The path parameters of an application and of one of the signals that could not be delivered to
 * it.
 */
export const SIGNAL_ID = z.object({ id: z.string(), signalId: z.string() });

/**
 * The body of `PUT /api/v1/applications/{id}/signals`: the format in which the events name a
 * person.
 */
export const ALLOW_SIGNALS = z.strictObject({
  subject_format: z.enum(['iss_sub', 'email']).default('iss_sub'),
});
