import { z } from 'zod';
import type { OwnApplication } from '#domain/account/own-access.service.js';
import { activityText } from '#domain/account/activity-text.js';
import { originFor } from '#domain/account/account-export.js';
import { readCursor, writeCursor } from '#domain/admin/audit-search/audit-cursor.js';
import { CREDENTIAL_KINDS, type OwnCredential } from '#domain/account/own-credential.js';
import { pageLimit } from '#platform/text/query-number.js';
import type { EventRange, OwnEvent } from '#domain/account/own-events.repository.js';

/**
 * The number of items on one page of a list: the default, and the largest that a client may
 * request.
 */
const PAGE_SIZE = { usual: 50, most: 200 } as const;

/** The query of a request for one page of a list. */
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
      .optional()
      .describe('The `next` of the page before.'),
    limit: pageLimit(PAGE_SIZE.most)
      .optional()
      .describe(
        `The most items of the page: ${PAGE_SIZE.usual} unless stated, ${PAGE_SIZE.most} at most.`,
      ),
  })
  .transform(({ after, limit }): EventRange => ({ after, limit: limit ?? PAGE_SIZE.usual }));

/**
 * The path parameter of a certificate. A text that is no serial number gets 404 and not 400,
 * because it matches no certificate.
 */
export const SERIAL = z.object({
  serial: z.string().describe('The serial number of the certificate, in decimal.'),
});

/** The path parameter of an application. */
export const CLIENT_ID = z.object({
  client_id: z.string().describe('The `client_id` of the application.'),
});

const time = z.iso.datetime();
const next = z
  .string()
  .nullable()
  .describe('The value of `after` for the next page; null on the last page.');
const count = z.int().min(0);

/** The client of a credential. */
const CLIENT = z.object({
  client_id: z.string().describe('The `client_id` of the client.'),
  name: z.string().nullable().describe('Its name; null for a client without one.'),
});

/** The origin of a request in JSON: the IP address, the device and the id of the request. */
const ORIGIN = {
  address: z.string().nullable().describe('The IP address of the request.'),
  device: z.string().nullable().describe('The `User-Agent` of the request.'),
  request_id: z.string().nullable().describe('The id of the request, as in its response header.'),
};

/**
 * A credential in the JSON of `/v1/account/credentials`. Members that do not apply to the kind of
 * the credential are null.
 */
export const CREDENTIAL_JSON = z
  .object({
    id: z.uuid().describe('The id of the credential.'),
    kind: z.enum(CREDENTIAL_KINDS).describe('The kind of the credential.'),
    issued_at: time.describe('The time of its issue.'),
    valid_until: time
      .nullable()
      .describe('The time at which it ends; null if it has no such time.'),
    revoked_at: time.nullable().describe('The time at which it was revoked; null if it was not.'),
    serial: z.string().nullable().describe('The serial number of a certificate, in decimal.'),
    principals: z.array(z.string()).describe('The login names in a certificate.'),
    target: z
      .string()
      .nullable()
      .describe('What it opens: a role of AWS, repositories, a cluster, or scopes.'),
    client: CLIENT.nullable().describe('The OAuth client that got it.'),
    ...ORIGIN,
  })
  .meta({ id: 'Credential', description: 'A credential that was issued in the name of the user.' });
export const CREDENTIALS_JSON = z
  .object({
    credentials: z.array(CREDENTIAL_JSON).describe('The credentials, the newest first.'),
    next,
  })
  .describe('A page of credentials.');

/** The answer to the revocation of a certificate. */
export const REVOKED_JSON = z
  .object({
    serial: z.string().describe('The serial number of the certificate, in decimal.'),
    revoked_at: time.describe('The time of the revocation.'),
    ended: z
      .object({ certificates: z.literal(1).describe('The one certificate.') })
      .describe('The number of what ended.'),
  })
  .describe('A certificate that was revoked.');

/** An application in the JSON of `/v1/account/applications`. */
export const APPLICATION_JSON = z
  .object({
    client_id: z.string().describe('The `client_id` of the application.'),
    name: z.string().describe('Its name.'),
    kind: z
      .enum(['first-party', 'application', 'dynamic'])
      .describe('`first-party` is this service, `dynamic` a client that registered itself.'),
    redirect_hosts: z.array(z.string()).describe('The hosts to which sign-ins lead.'),
    scopes: z.array(z.string()).describe('The scopes that the user granted.'),
    since: time.describe('The time of the first sign-in.'),
    last_used_at: time.nullable().describe('The time of the last sign-in or use of a token.'),
    has_access: z.boolean().describe('True while it has a session, a grant or a token.'),
  })
  .meta({ id: 'OwnApplication', description: 'An application that the user signed in to.' });
export const APPLICATIONS_JSON = z
  .object({ applications: z.array(APPLICATION_JSON).describe('The applications.') })
  .describe('The applications that the user signed in to.');

/**
 * The answer to a request that ends an application's access: the numbers of sessions, grants and
 * tokens that ended.
 */
export const ENDED_ACCESS_JSON = z
  .object({
    ended: z
      .object({
        sessions: count.describe('The ended sessions.'),
        grants: count.describe('The ended OAuth grants.'),
        tokens: count.describe('The ended OAuth tokens.'),
      })
      .describe('The numbers of what ended.'),
  })
  .describe('What the end of the access of an application ended.');

/**
 * An event in the JSON of `/v1/account/activity`. The IP address and the device are those of the
 * person who acted. If another person than the user acted, both are null, so that the user does not
 * see data of the other person.
 */
export const ACTIVITY_JSON = z
  .object({
    id: z.uuid().describe('The id of the event.'),
    type: z.string().describe('The type of the event, for programs.'),
    text: z.string().describe('The event in words, for people.'),
    created_at: time.describe('The time of the event.'),
    ...ORIGIN,
  })
  .meta({
    id: 'Activity',
    description: 'An event of the user. Address and device are null if another person acted.',
  });
export const ACTIVITIES_JSON = z
  .object({ events: z.array(ACTIVITY_JSON).describe('The events, the newest first.'), next })
  .describe('A page of the events of the user.');

/**
 * Renders a credential as JSON. Members that do not apply to its kind are null, and the list of
 * principals is empty then.
 */
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

/** Renders an application that the user signed in to, for `/v1/account/applications`. */
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

/**
 * Renders an event as JSON for a user. Its IP address and device are shown only if the user acted.
 */
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

/** Writes the position after which the next page begins as a cursor; null on the last page. */
export function nextJson(place: EventRange['after'] | null): string | null {
  return place ? writeCursor(place) : null;
}
