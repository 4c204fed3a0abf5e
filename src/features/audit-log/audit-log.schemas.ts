import { z } from 'zod';
import type { AuditPlace } from '#domain/audit/audit-filter.js';
import { TYPE_FILTERS, typesOfFilter } from '#domain/audit/audit-kinds.js';
import type { FeedPlace } from '#domain/audit/feed/audit-feed.repository.js';
import { readFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import type { SealedPlace } from '#domain/audit/sealed-export/sealed-export.js';
import { readCursor, readSealedPlace } from '#domain/admin/audit-search/audit-cursor.js';
import {
  LATEST,
  type AuditQuery,
  type FeedQuery,
} from '#domain/admin/audit-search/audit-events.service.js';
import { keysOf, LONGEST_FIELD } from '#domain/admin/audit-search/audit-question.js';
import { parseNetwork } from '#domain/admin/audit-search/network.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { FORMAT_NAMES } from '#platform/http/files/line-file.js';
import { isSingleLine } from '#platform/text/single-line.js';

/** The most events on a page. */
const LARGEST_PAGE = 1000;

const TEXT = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(LONGEST_FIELD, `must have at most ${LONGEST_FIELD} characters`)
  .refine(isSingleLine, 'must be one line of text');

const time = z.iso
  .datetime({ offset: true, error: 'must be a time as RFC 3339 writes it' })
  .transform((text) => new Date(text));

/**
 * Makes a schema of a function that reads a text. The function returns undefined for a text that it
 * cannot read.
 */
function readBy<Value>(read: (text: string) => Value | undefined, message: string) {
  return TEXT.transform((text, context): Value => {
    const value = read(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}

/**
 * The values of `format`. `ocsf` is NDJSON with documents of OCSF, and `sealed` NDJSON with the
 * leaves of the seal.
 */
const AUDIT_FORMATS = [...FORMAT_NAMES, 'ocsf', 'sealed'] as const;

/** A format of the audit log. */
export type AuditFormat = (typeof AUDIT_FORMATS)[number];

/**
 * The query of `GET /api/v1/org/audit-events`. An unknown parameter is an error, because ignoring
 * it would return events that the client wanted to leave out.
 */
export const AUDIT_QUERY = z
  .strictObject({
    /** A type, or the name of a group of types such as `keys`. */
    type: z.enum(TYPE_FILTERS, { error: 'must be the type of an event' }).optional(),
    user: z.guid('must be the id of a user').optional(),
    email: readBy(parseEmailAddress, 'must be an e-mail address').optional(),
    /** The id or the address of a user, or the beginning of a name or address. */
    person: TEXT.optional(),
    /** The id of a client or application, or its name at the time. */
    client: TEXT.optional(),
    /** The name or the id of a target, the ARN of a role, or the owner of a GitHub installation. */
    target: TEXT.optional(),
    /** The id of a security key, or an AAGUID or a part of the name of its model. */
    key: TEXT.optional(),
    /** An address or a network. */
    ip: readBy(parseNetwork, 'must be an address or a network').optional(),
    request: TEXT.optional(),
    from: time.optional(),
    to: time.optional(),
    /**
     * The `next` of the previous page; `EPOCH.INDEX` of the last leaf in the format `sealed`. In
     * the order `asc` the text `latest` stands for the present end of the log.
     */
    after: z
      .string()
      .max(128)
      .transform((text, context): AskedPlace => {
        if (text === LATEST) return LATEST;
        const place = readCursor(text) ?? readFeedCursor(text) ?? readSealedPlace(text);
        if (place) return place;
        context.addIssue({ code: 'custom', message: 'must be the next of a page before' });
        return z.NEVER;
      })
      .optional(),
    limit: z
      .string()
      .regex(/^\d{1,4}$/, 'must be a whole number')
      .transform(Number)
      .pipe(z.int().min(1).max(LARGEST_PAGE))
      .optional(),
    /**
     * The format of the response. A link uses this parameter, because it cannot set the header
     * `Accept`.
     */
    format: z.enum(AUDIT_FORMATS).optional(),
    /**
     * `asc` is the order for programs that read the whole log: each event comes once, and never
     * before an earlier event. Only the parameters `type`, `after`, `limit` and `format` can be
     * combined with it. The default is `desc`, the newest events first.
     */
    order: z.enum(['asc', 'desc']).optional(),
  })
  .superRefine(({ order, after, format, limit, type, ...search }, context) => {
    const isFeed = order === 'asc';
    const isSealed = format === 'sealed';
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const isOfOrder = !after || (isSealed ? isOfSeal(after) : isOfFeed(after) === isFeed);
    if (!isOfOrder || (after && isOfSeal(after) && !isSealed)) {
      refuse('after', 'must be a cursor of the same order');
    }
    if (isSealed && !isFeed) refuse('order', 'must be asc in the format sealed');
    if (isSealed && limit !== undefined) refuse('limit', 'cannot be used in the format sealed');
    if (isSealed && type !== undefined) refuse('type', 'cannot be used in the format sealed');
    if (!isFeed) return;
    if (format === 'csv') refuse('format', 'must be json, ndjson, ocsf or sealed in this order');
    for (const [name, value] of Object.entries(search)) {
      if (value !== undefined) refuse(name, 'cannot be used in this order');
    }
  });

/** A place at which a client goes on: in one of both orders, or in the sealed export. */
type AskedPlace = AuditPlace | FeedPlace | SealedPlace | typeof LATEST;

/** Returns true for a place in the order `asc`. */
function isOfFeed(after: AskedPlace): after is FeedPlace | typeof LATEST {
  return after === LATEST || 'xid' in after;
}

/** Returns true for a place in the sealed export. */
function isOfSeal(after: AskedPlace): after is SealedPlace {
  return after !== LATEST && 'index' in after;
}

/** The query of `GET /api/v1/org/audit-events` after validation. */
export type AuditRequest = z.output<typeof AUDIT_QUERY>;

/** Converts the query of a request to a search of the audit log. */
export function auditQuery(request: AuditRequest): AuditQuery {
  const { type, user, email, person, client, target, key, ip, request: requestId } = request;
  const people = [user, email, person].filter((text) => text !== undefined);
  const search = {
    types: type && typesOfFilter(type),
    people,
    client,
    target,
    keys: key === undefined ? undefined : keysOf(key),
    network: ip,
    requestId,
    from: request.from,
    to: request.to,
  };
  const { after, limit } = request;
  return {
    search,
    after: after && !isOfFeed(after) && !isOfSeal(after) ? after : undefined,
    limit,
  };
}

/** Converts the query of a request with `order=asc`, which reads the feed for programs. */
export function feedQuery({ after, limit, type }: AuditRequest): FeedQuery {
  const types = type && typesOfFilter(type);
  return { after: after && isOfFeed(after) ? after : undefined, limit, types };
}

/** Returns the place from which a request goes on in the sealed export. */
export function sealedPlace({ after }: AuditRequest): SealedPlace | undefined {
  return after && isOfSeal(after) ? after : undefined;
}

/** An event in the JSON of the API. */
export const AUDIT_EVENT_JSON = z.object({
  id: z.string(),
  type: z.string(),
  class: z.string(),
  actor_id: z.string().nullable(),
  subject_id: z.string().nullable(),
  /**
   * The addresses of both users and the name of the client at the time of the event; null in events
   * from before version 0.5.
   */
  actor_email: z.string().nullable(),
  subject_email: z.string().nullable(),
  client_name: z.string().nullable(),
  request_id: z.string().nullable(),
  ip: z.string().nullable(),
  user_agent: z.string().nullable(),
  details: z.record(z.string(), z.unknown()),
  created_at: z.string(),
  /**
   * The cursor from which a client can continue after this event; absent unless the request has
   * `order=asc`.
   */
  cursor: z.string().optional(),
});

/**
 * A page of events. `next` is null at the end of the log. With `order=asc` it is never null,
 * because more events follow later. A page that has fewer events than `limit` is not always the
 * last page.
 */
export const AUDIT_PAGE_JSON = z.object({
  events: z.array(AUDIT_EVENT_JSON),
  next: z.string().nullable(),
});
/** The type of a page of events in the JSON of the API. */
export type AuditPageJson = z.output<typeof AUDIT_PAGE_JSON>;
