import { z } from 'zod';
import type { OwnApplication } from '#domain/account/own-access.service.js';
import { activityText } from '#domain/account/activity-text.js';
import { originFor } from '#domain/account/account-export.js';
import { readCursor, writeCursor } from '#domain/admin/audit-search/audit-cursor.js';
import { CREDENTIAL_KINDS, type OwnCredential } from '#domain/account/own-credential.js';
import type { EventRange, OwnEvent } from '#domain/account/own-events.repository.js';

/**
 * The number of items on one page of a list: the default, and the largest that a client may
 * request.
 */
const PAGE_SIZE = { usual: 50, most: 200 } as const;

/** The query of a list. `after` is the value of `next` in the previous page. */
export const PAGE_QUERY = z
  .strictObject({
    after: z
      .string()
      .max(128)
      .transform((text, context) => {
        const place = readCursor(text);
        if (place) return place;
        context.addIssue({ code: 'custom', message: 'must be the next of a page before' });
        return z.NEVER;
      })
      .optional(),
    limit: z
      .string()
      .regex(/^\d{1,3}$/, 'must be a whole number')
      .transform(Number)
      .pipe(z.int().min(1).max(PAGE_SIZE.most))
      .optional(),
  })
  .transform(({ after, limit }): EventRange => ({ after, limit: limit ?? PAGE_SIZE.usual }));

/**
 * The path parameter of a certificate. A text that is no serial number gets 404 and not 400,
 * because it matches no certificate.
 */
export const SERIAL = z.object({ serial: z.string() });

/** The path parameter of an application. */
export const CLIENT_ID = z.object({ client_id: z.string() });

const time = z.iso.datetime();
const next = z.string().nullable();
const count = z.int().min(0);

/**
 * A credential in the JSON of `/v1/account/credentials`. Members that a kind does not have are
 * null.
 */
export const CREDENTIAL_JSON = z.object({
  id: z.uuid(),
  kind: z.enum(CREDENTIAL_KINDS),
  issued_at: time,
  valid_until: time.nullable(),
  revoked_at: time.nullable(),
  serial: z.string().nullable(),
  principals: z.array(z.string()),
  target: z.string().nullable(),
  client: z.object({ client_id: z.string(), name: z.string().nullable() }).nullable(),
  address: z.string().nullable(),
  device: z.string().nullable(),
  request_id: z.string().nullable(),
});
export const CREDENTIALS_JSON = z.object({ credentials: z.array(CREDENTIAL_JSON), next });

/** The answer to the revocation of a certificate. */
export const REVOKED_JSON = z.object({
  serial: z.string(),
  revoked_at: time,
  ended: z.object({ certificates: z.literal(1) }),
});

/** An application in the JSON of `/v1/account/applications`. */
export const APPLICATION_JSON = z.object({
  client_id: z.string(),
  name: z.string(),
  kind: z.enum(['first-party', 'application', 'dynamic']),
  redirect_hosts: z.array(z.string()),
  scopes: z.array(z.string()),
  since: time,
  last_used_at: time.nullable(),
  has_access: z.boolean(),
});
export const APPLICATIONS_JSON = z.object({ applications: z.array(APPLICATION_JSON) });

/** The answer to the end of an application's access. */
export const ENDED_ACCESS_JSON = z.object({
  ended: z.object({ sessions: count, grants: count, tokens: count }),
});

/**
 * An event in the JSON of `/v1/account/activity`. The address and the device are those of the
 * person who acted. They are null if this was not the user, so that the user does not see data of
 * another person.
 */
export const ACTIVITY_JSON = z.object({
  id: z.uuid(),
  type: z.string(),
  text: z.string(),
  created_at: time,
  address: z.string().nullable(),
  device: z.string().nullable(),
  request_id: z.string().nullable(),
});
export const ACTIVITIES_JSON = z.object({ events: z.array(ACTIVITY_JSON), next });

/** Renders a credential as JSON. */
export function credentialJson(credential: OwnCredential): z.output<typeof CREDENTIAL_JSON> {
  const { clientId, clientName } = credential;
  return {
    id: credential.id,
    kind: credential.kind,
    issued_at: credential.issuedAt.toISOString(),
    valid_until: credential.validUntil?.toISOString() ?? null,
    revoked_at: credential.revokedAt?.toISOString() ?? null,
    serial: credential.serial,
    principals: [...credential.principals],
    target: credential.target,
    client: clientId === null ? null : { client_id: clientId, name: clientName },
    address: credential.ip,
    device: credential.userAgent,
    request_id: credential.requestId,
  };
}

/** Renders an application as JSON. */
export function applicationJson(of: OwnApplication): z.output<typeof APPLICATION_JSON> {
  return {
    client_id: of.id,
    name: of.name,
    kind: of.kind,
    redirect_hosts: [...of.hosts],
    scopes: [...of.scopes],
    since: of.since.toISOString(),
    last_used_at: of.lastUsedAt?.toISOString() ?? null,
    has_access: of.hasAccess,
  };
}

/** Renders an event as JSON for a user. Its address and device are shown only if the user acted. */
export function activityJson(event: OwnEvent, userId: string): z.output<typeof ACTIVITY_JSON> {
  const { ip, userAgent } = originFor(event, userId);
  return {
    id: event.id,
    type: event.type,
    text: activityText(event, userId),
    created_at: event.createdAt.toISOString(),
    address: ip,
    device: userAgent,
    request_id: event.requestId,
  };
}

/** Writes the position after which the next page begins as a text; null on the last page. */
export function nextJson(place: EventRange['after'] | null): string | null {
  return place ? writeCursor(place) : null;
}
