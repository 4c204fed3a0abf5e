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
 * Seconds for which a secret stays valid beside its successor: a day by default, 30 days at most.
 */
const OVERLAP = { usual: 86_400, longest: 30 * 86_400 } as const;

/** The most days until a new secret ends. */
const MOST_SECRET_DAYS = 730;

/**
 * The limits of an ID token's lifetime in seconds: an offline verifier accepts a token until it
 * expires.
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

/** The name in an update. If the application has the name already, it is not checked again. */
const knownName = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(64, 'must have at most 64 characters')
  .refine(isSingleLine, VISIBLE_LINE);

const name = knownName.refine(isVisibleLine, VISIBLE_LINE);

/** A scope (RFC 6749 §3.3). */
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
  /** The library checks the keys themselves. */
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
 * A client in the body of `POST /api/v1/applications`. A null or missing member gets its default;
 * an unknown one is rejected.
 */
const CLIENT = z.strictObject({
  name,
  type: z.enum(['web', 'spa', 'native', 'service']),
  ...settings,
});
/** A parsed {@link CLIENT}. */
export type NewApplication = z.output<typeof CLIENT>;

/** A cluster in the body of `POST /api/v1/applications`. */
const CLUSTER = z.strictObject({ name, type: z.literal('kubernetes'), resource: address });
/** A parsed {@link CLUSTER}. */
export type NewClusterBody = z.output<typeof CLUSTER>;

/** The body of `POST /api/v1/applications`. */
export const REGISTER = z.discriminatedUnion('type', [CLIENT, CLUSTER], {
  error: 'must be web, spa, native, service or kubernetes',
});

/**
 * The body of `PATCH /api/v1/applications/{id}`: a missing member stays, null resets it. The type
 * cannot change.
 */
export const UPDATE = z.strictObject({ name: knownName.optional(), ...settings });
/** A parsed {@link UPDATE}. */
export type ApplicationUpdate = z.output<typeof UPDATE>;

/** The query of `GET /api/v1/applications`. */
export const PAGE = z.object({
  /** The `next` of the previous page. */
  after: z
    .string()
    .max(64)
    .regex(/^[\w-]*$/)
    .default(''),
});
/** A parsed {@link PAGE}. */
export type ApplicationsPage = z.output<typeof PAGE>;

/** The body of `POST /api/v1/applications/{id}/secrets`, which may be absent. */
export const ROTATE = z
  .strictObject({
    expires_previous_in_seconds: z.int().min(0).max(OVERLAP.longest).default(OVERLAP.usual),
    /** The days until the new secret ends; without it there is no end. */
    expires_in_days: z.int().min(1).max(MOST_SECRET_DAYS).exactOptional(),
  })
  .prefault({});
/** A parsed {@link ROTATE}. */
export type SecretRotation = z.output<typeof ROTATE>;

/** The id of an application. An id in another format is a 404, not a 400. */
export const APPLICATION_ID = z.object({ id: z.string() });

/** The ids of an application and of one of its dead letters. */
export const NOTICE_ID = z.object({ id: z.string(), noticeId: z.string() });

/** The ids of an application and of one of its secrets. */
export const SECRET_ID = z.object({ id: z.string(), secretId: z.string() });
