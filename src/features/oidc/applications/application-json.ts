import { z } from 'zod';
import type { ClientApplication } from '#domain/oauth/applications/applications.repository.js';
import type { NoticesOfClient } from '#domain/oauth/logout-notices/dead-letters.repository.js';
import type { ClientSecret } from '#domain/oauth/clients/clients.repository.js';
import { AUTH_METHODS } from '#domain/oauth/applications/registration.js';
import { NAME, SETTINGS, TYPE } from './setting-texts.js';
import { clusterNameOf } from './registration/cluster-registration.js';
import { registrationOf } from '#domain/oauth/applications/registration-metadata.js';

/** The owner and the dates of an application in the API. */
const OWNERSHIP = {
  client_id: z.string().describe('The id of the application.'),
  owner_id: z
    .string()
    .nullable()
    .describe('The id of its owner; null for a cluster, which belongs to the organization.'),
  org_id: z.string().nullable().describe('The id of its organization.'),
  created_at: z.iso.datetime().describe('The time of its registration.'),
  updated_at: z.iso.datetime().describe('The time of its last change.'),
};

const texts = z.array(z.string()).readonly();
const text = z.string().nullable();
const truth = z.boolean();

/**
 * An OAuth client in the JSON of the API. It contains the registration, with the default of each
 * member that was not set.
 */
const CLIENT_JSON = z
  .object({
    ...OWNERSHIP,
    name: z.string().describe(NAME),
    type: z.enum(['web', 'spa', 'native', 'service']).describe(TYPE),
    profile: z.literal('fapi2').nullable().describe(SETTINGS.profile),
    grant_types: texts.describe(SETTINGS.grant_types),
    auth_method: z.enum([...AUTH_METHODS, 'none']).describe(SETTINGS.auth_method),
    redirect_uris: texts.describe(SETTINGS.redirect_uris),
    post_logout_redirect_uris: texts.describe(SETTINGS.post_logout_redirect_uris),
    initiate_login_uri: text.describe(SETTINGS.initiate_login_uri),
    request_uris: texts.describe(SETTINGS.request_uris),
    backchannel_logout_uri: text.describe(SETTINGS.backchannel_logout_uri),
    backchannel_logout_session_required: truth.describe(
      SETTINGS.backchannel_logout_session_required,
    ),
    backchannel_logout_at_session_end: truth.describe(SETTINGS.backchannel_logout_at_session_end),
    scopes: texts.describe(SETTINGS.scopes),
    jwks: z
      .object({
        keys: z
          .array(z.custom<object>())
          .readonly()
          .describe('The public keys as JSON Web Keys (RFC 7517).'),
      })
      .readonly()
      .nullable()
      .describe(SETTINGS.jwks),
    jwks_uri: text.describe(SETTINGS.jwks_uri),
    tls_client_auth_subject_dn: text.describe(SETTINGS.tls_client_auth_subject_dn),
    sender_constraint: z.enum(['dpop', 'mtls']).nullable().describe(SETTINGS.sender_constraint),
    require_signed_request_object: truth.describe(SETTINGS.require_signed_request_object),
    require_pkce: truth.describe(SETTINGS.require_pkce),
    id_token_lifetime_seconds: z.int().describe(SETTINGS.id_token_lifetime_seconds),
    userinfo_signed_response_alg: z
      .enum(['ES256', 'RS256'])
      .nullable()
      .describe(SETTINGS.userinfo_signed_response_alg),
    response_mode: z.literal('jwt').nullable().describe(SETTINGS.response_mode),
    last_used_at: z.iso.datetime().meta({ description: 'The day of the last use.' }),
    approved_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'When an admin approved it; null without an approval.' }),
    approved_redirect_uris: texts
      .nullable()
      .meta({ description: 'The URLs at which its sign-ins need no consent of members.' }),
  })
  .meta({ id: 'ClientApplication', description: 'An application that is an OAuth client.' });

/** A Kubernetes cluster in the JSON of the API. */
const CLUSTER_JSON = z
  .object({
    ...OWNERSHIP,
    name: z.string().describe('The name of the cluster.'),
    type: z.literal('kubernetes').describe('A Kubernetes cluster.'),
    resource: z.string().describe('The audience of the tokens for its API server.'),
  })
  .meta({ id: 'Cluster', description: 'An application that is a Kubernetes cluster.' });

/**
 * An application in the JSON of the API: an OAuth client or a Kubernetes cluster, with its owner
 * and its dates.
 */
export const APPLICATION_JSON = z
  .union([CLIENT_JSON, CLUSTER_JSON])
  .meta({ id: 'Application', description: 'An OAuth client or a Kubernetes cluster.' });
/** A page of applications in the JSON of the API. */
export const APPLICATIONS_JSON = z
  .object({
    applications: z.array(APPLICATION_JSON).describe('The applications.'),
    next: z
      .string()
      .nullable()
      .describe('The value of `after` for the next page; null on the last page.'),
  })
  .meta({ id: 'ApplicationPage', description: 'A page of applications.' });
/** The type of an application in the JSON of the API, by which the compiler checks answers. */
export type ApplicationJson = z.output<typeof APPLICATION_JSON>;

/** A new application in the JSON of the API, with its secret if it has one. */
export const NEW_APPLICATION_JSON = z
  .union([
    CLIENT_JSON.extend({
      client_secret: z
        .string()
        .optional()
        .describe('The secret of the client, if it has one. Only this answer has it.'),
    }).meta({ id: 'NewClientApplication', description: 'A new OAuth client with its secret.' }),
    CLUSTER_JSON,
  ])
  .describe('The new application.');

/**
 * Converts an application to JSON. A Kubernetes cluster has only some of the members of an OAuth
 * client.
 */
export function applicationJson(application: ClientApplication): ApplicationJson {
  const { resource } = application;
  const ownership = {
    owner_id: application.ownerId,
    org_id: application.orgId,
    created_at: application.createdAt.toISOString(),
    updated_at: application.updatedAt.toISOString(),
  };
  if (resource !== null) {
    const name = clusterNameOf(application);
    return { client_id: application.id, name, type: 'kubernetes', resource, ...ownership };
  }
  return {
    client_id: application.id,
    ...registrationOf(application.metadata),
    ...ownership,
    last_used_at: application.lastUsedAt.toISOString(),
    approved_at: application.approvedAt?.toISOString() ?? null,
    approved_redirect_uris: application.approvedUris,
  };
}

/** Returns the name and the type of an application, for the audit log. */
export function nameAndTypeOf(application: ClientApplication) {
  const { name, type } = applicationJson(application);
  return { name, type };
}

/**
 * The logout notices of an application in the JSON of the API: how many wait, were sent or failed.
 */
export const NOTICES_JSON = z
  .object({
    waiting: z.int().describe('The notices that wait for delivery.'),
    oldest: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'The end that has waited longest; null if none waits.' }),
    sent: z.int().meta({ description: 'The notices that it took in the last 30 days.' }),
    failed: z.int().meta({ description: 'The dead letters of the last 30 days.' }),
    dead_letters: z
      .array(
        z.object({
          id: z.string().describe('The id of the notice.'),
          sub: z.string().describe('The subject of the logout token: the id of the user.'),
          sid: z.string().nullable().describe('The session of the logout token.'),
          created_at: z.iso.datetime().describe('The time of the end that it tells.'),
          dead_at: z.iso.datetime().describe('The time of the last attempt.'),
          result: z.string().nullable().describe('The result of the last attempt.'),
        }),
      )
      .readonly()
      .describe('The notices that could not be delivered.'),
  })
  .meta({ id: 'LogoutNotices', description: 'The logout notices of an application.' });
/**
 * The type of the logout notices of an application in the JSON of the API, by which the compiler
 * checks answers.
 */
export type NoticesJson = z.output<typeof NOTICES_JSON>;

/** Converts the logout notices of an application to JSON, with times in ISO 8601. */
export function noticesJson(notices: NoticesOfClient): NoticesJson {
  const { waiting, oldest, sent, failed, deadLetters } = notices;
  return {
    waiting,
    oldest: oldest?.toISOString() ?? null,
    sent,
    failed,
    dead_letters: deadLetters.map(({ id, subject, sid, createdAt, deadAt, result }) => ({
      id,
      sub: subject,
      sid,
      created_at: createdAt.toISOString(),
      dead_at: deadAt.toISOString(),
      result,
    })),
  };
}

/**
 * A client secret in the JSON of the API, without its value, which is shown only when it is
 * created.
 */
export const SECRET_JSON = z
  .object({
    id: z.string().describe('The id of the secret.'),
    created_at: z.iso.datetime().describe('The time of its creation.'),
    expires_at: z.iso.datetime().nullable().describe('The time at which it ends; null for none.'),
  })
  .meta({ id: 'ApplicationSecret', description: 'A secret of an application, without its value.' });
/**
 * The type of a secret, without its value, in the JSON of the API, by which the compiler checks
 * answers.
 */
export type SecretJson = z.output<typeof SECRET_JSON>;

/** Converts a client secret to JSON, without its value. */
export function secretJson({ id, createdAt, expiresAt }: ClientSecret): SecretJson {
  return {
    id,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
  };
}
