import { z } from 'zod';
import type { ClientApplication } from '#domain/oauth/applications/applications.repository.js';
import type { NoticesOfClient } from '#domain/oauth/logout-notices/dead-letters.repository.js';
import type { ClientSecret } from '#domain/oauth/clients/clients.repository.js';
import { AUTH_METHODS } from '#domain/oauth/applications/registration.js';
import { clusterNameOf } from './registration/cluster-registration.js';
import { registrationOf } from '#domain/oauth/applications/registration-metadata.js';

/** The owner and the dates of an application in the API. */
const OWNERSHIP = {
  client_id: z.string(),
  owner_id: z
    .string()
    .nullable()
    .meta({ description: 'Null for a cluster, which belongs to the organization.' }),
  org_id: z.string().nullable(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
};

const texts = z.array(z.string()).readonly();

/**
 * An OAuth client in the JSON of the API: its registration, with the defaults of members that were
 * not set.
 */
const CLIENT_JSON = z
  .object({
    ...OWNERSHIP,
    name: z.string(),
    type: z.enum(['web', 'spa', 'native', 'service']),
    profile: z.literal('fapi2').nullable(),
    grant_types: texts,
    auth_method: z.enum([...AUTH_METHODS, 'none']),
    redirect_uris: texts,
    post_logout_redirect_uris: texts,
    initiate_login_uri: z
      .string()
      .nullable()
      .meta({ description: 'The address at which a sign-in to the application starts.' }),
    request_uris: texts,
    backchannel_logout_uri: z
      .string()
      .nullable()
      .meta({ description: 'The address of logout tokens.' }),
    backchannel_logout_session_required: z.boolean(),
    backchannel_logout_at_session_end: z.boolean().meta({
      description: 'True: also the end of a session by its own time is told.',
    }),
    scopes: texts,
    jwks: z
      .object({ keys: z.array(z.custom<object>()).readonly() })
      .readonly()
      .nullable(),
    jwks_uri: z.string().nullable(),
    tls_client_auth_subject_dn: z.string().nullable(),
    sender_constraint: z.enum(['dpop', 'mtls']).nullable(),
    require_signed_request_object: z.boolean(),
    require_pkce: z.boolean(),
    id_token_lifetime_seconds: z.int(),
    userinfo_signed_response_alg: z.enum(['ES256', 'RS256']).nullable(),
    response_mode: z.literal('jwt').nullable(),
    last_used_at: z.iso.datetime().meta({ description: 'The day of the last use.' }),
    approved_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'When an admin approved it; null without an approval.' }),
    approved_redirect_uris: texts
      .nullable()
      .meta({ description: 'The addresses at which its sign-ins need no consent of members.' }),
  })
  .meta({ id: 'ClientApplication' });

/** A Kubernetes cluster in the JSON of the API. */
const CLUSTER_JSON = z
  .object({
    ...OWNERSHIP,
    name: z.string(),
    type: z.literal('kubernetes'),
    resource: z.string(),
  })
  .meta({ id: 'Cluster' });

/**
 * An application in the JSON of the API: an OAuth client or a Kubernetes cluster, with its owner
 * and its dates.
 */
export const APPLICATION_JSON = z.union([CLIENT_JSON, CLUSTER_JSON]).meta({ id: 'Application' });
/** A page of applications in the JSON of the API. */
export const APPLICATIONS_JSON = z.object({
  applications: z.array(APPLICATION_JSON),
  next: z.string().nullable(),
});
/** The type of an application in the JSON of the API. */
export type ApplicationJson = z.output<typeof APPLICATION_JSON>;

/** A new application in the JSON of the API, with its secret if it has one. */
export const NEW_APPLICATION_JSON = z.union([
  CLIENT_JSON.extend({
    client_secret: z.string().optional().meta({ description: 'Shown only here.' }),
  }).meta({ id: 'NewClientApplication' }),
  CLUSTER_JSON,
]);

/** Converts an application to JSON. */
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
    waiting: z.int(),
    oldest: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'The end that has waited longest; null if none waits.' }),
    sent: z.int().meta({ description: 'The notices that it took in the last 30 days.' }),
    failed: z.int().meta({ description: 'The dead letters of the last 30 days.' }),
    dead_letters: z
      .array(
        z.object({
          id: z.string(),
          sub: z.string(),
          sid: z.string().nullable(),
          created_at: z.iso.datetime(),
          dead_at: z.iso.datetime(),
          result: z.string().nullable(),
        }),
      )
      .readonly(),
  })
  .meta({ id: 'LogoutNotices' });
/** The type of the logout notices of an application in the JSON of the API. */
export type NoticesJson = z.output<typeof NOTICES_JSON>;

/** Converts the logout notices of an application to JSON. */
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
  .object({ id: z.string(), created_at: z.iso.datetime(), expires_at: z.iso.datetime().nullable() })
  .meta({ id: 'ApplicationSecret' });
/** The type of a secret, without its value, in the JSON of the API. */
export type SecretJson = z.output<typeof SECRET_JSON>;

/** Converts a secret to JSON. */
export function secretJson({ id, createdAt, expiresAt }: ClientSecret): SecretJson {
  return {
    id,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
  };
}
