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
import { pageLimit } from '#platform/text/query-number.js';
import { isSingleLine } from '#platform/text/single-line.js';

/** The largest number of events on one page. */
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
 * Makes a schema from a function that reads a text. The function returns undefined for a text that
 * it cannot read; the schema refuses this text with the message.
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
 * The values of `format`. `ocsf` is NDJSON with documents of the Open Cybersecurity Schema
 * Framework. `sealed` is NDJSON with the leaves of the hash tree that seals the log.
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
    type: z
      .enum(TYPE_FILTERS, { error: 'must be the type of an event' })
      .optional()
      .describe('A type, or the name of a group of types such as `keys`.'),
    user: z
      .guid('must be the id of a user')
      .optional()
      .describe('The id of the user who acted, or whom the event is about.'),
    email: readBy(parseEmailAddress, 'must be an e-mail address')
      .optional()
      .describe('The e-mail address of such a user.'),
    person: TEXT.optional().describe(
      'The id or the address of such a user, or the beginning of a name or address.',
    ),
    client: TEXT.optional().describe('The id of a client or application, or its name at the time.'),
    target: TEXT.optional().describe(
      'The name or the id of a target, the ARN of a role, or the owner of a GitHub installation.',
    ),
    key: TEXT.optional().describe(
      'The id of a security key, or an AAGUID or a part of the name of its model.',
    ),
    ip: readBy(parseNetwork, 'must be an address or a network')
      .optional()
      .describe('An address or a network of the request.'),
    request: TEXT.optional().describe('The id of the request, as in its response header.'),
    from: time.optional().describe('Events at or after this time (RFC 3339).'),
    to: time.optional().describe('Events before this time (RFC 3339).'),
    after: z
      .string()
      // Without `abort`, the check of the whole query at the end of this schema would still run,
      // and would get a text that was not converted.
      .max(128, { abort: true })
      .transform((text, context): AskedPlace => {
        if (text === LATEST) return LATEST;
        const place = readCursor(text) ?? readFeedCursor(text) ?? readSealedPlace(text);
        if (place) return place;
        context.addIssue({ code: 'custom', message: 'must be the next of a page before' });
        return z.NEVER;
      })
      .optional()
      .describe(
        'The `next` of the page before; `EPOCH.INDEX` of the last leaf in the format `sealed`. In the order `asc`, `latest` is the present end of the log.',
      ),
    limit: pageLimit(LARGEST_PAGE)
      .optional()
      .describe(`The most events of the page: ${LARGEST_PAGE} at most.`),
    format: z
      .enum(AUDIT_FORMATS)
      .optional()
      .describe('The format of the response, in place of the header `Accept`.'),
    order: z
      .enum(['asc', 'desc'])
      .optional()
      .describe(
        '`asc` is for programs that read the whole log: each event comes once, and never before an earlier one. It goes with `type`, `after`, `limit` and `format` alone. As lines, a response without a line has the URL to go on from in the header `Link`. Without this parameter, the newest events come first.',
      ),
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

/**
 * A position after which a client goes on: in one of the two orders (oldest or newest first), or in
 * the sealed export.
 */
type AskedPlace = AuditPlace | FeedPlace | SealedPlace | typeof LATEST;

/** Returns true for a position in the order `asc`. */
function isOfFeed(after: AskedPlace): after is FeedPlace | typeof LATEST {
  return after === LATEST || 'xid' in after;
}

/** Returns true for a position in the sealed export. */
function isOfSeal(after: AskedPlace): after is SealedPlace {
  return after !== LATEST && 'index' in after;
}

/** The query of `GET /api/v1/org/audit-events` after validation, as the handler gets it. */
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

/**
 * Converts the query of a request with `order=asc` to a query of the feed, by which programs read
 * the whole log.
 */
export function feedQuery({ after, limit, type }: AuditRequest): FeedQuery {
  const types = type && typesOfFilter(type);
  return { after: after && isOfFeed(after) ? after : undefined, limit, types };
}

/** Returns the position after which the sealed export goes on; undefined for its beginning. */
export function sealedPlace({ after }: AuditRequest): SealedPlace | undefined {
  return after && isOfSeal(after) ? after : undefined;
}

/** An event in the JSON of the API. */
export const AUDIT_EVENT_JSON = z
  .object({
    id: z.string().describe('The id of the event.'),
    type: z.string().describe('The type of the event, such as `login_success`.'),
    class: z.string().describe('`auth`, `oauth` or `admin`, by which the log keeps it.'),
    actor_id: z.string().nullable().describe('The id of the user who acted.'),
    subject_id: z.string().nullable().describe('The id of the user whom the event is about.'),
    actor_email: z.string().nullable().describe('The address of the actor at the time.'),
    subject_email: z.string().nullable().describe('The address of the subject at the time.'),
    client_name: z.string().nullable().describe('The name of the client at the time.'),
    request_id: z.string().nullable().describe('The id of the request, as in its response header.'),
    ip: z.string().nullable().describe('The IP address of the request.'),
    user_agent: z.string().nullable().describe('The `User-Agent` of the request.'),
    details: z.record(z.string(), z.unknown()).describe('What the type of the event adds.'),
    created_at: z.string().describe('The time of the event (RFC 3339).'),
    cursor: z
      .string()
      .optional()
      .describe('The value of `after` to go on behind this event; only with `order=asc`.'),
  })
  .meta({ id: 'AuditEvent', description: 'An event of the audit log.' });

/** A page of events. */
export const AUDIT_PAGE_JSON = z
  .object({
    events: z
      .array(AUDIT_EVENT_JSON)
      .describe('The events. Fewer than `limit` do not mean that the page is the last one.'),
    next: z
      .string()
      .nullable()
      .describe('The value of `after` for the next page; null at the end, never with `order=asc`.'),
  })
  .meta({ id: 'AuditPage', description: 'A page of the audit log.' });
/** The type of a page of events in the JSON of the API, by which the compiler checks answers. */
export type AuditPageJson = z.output<typeof AUDIT_PAGE_JSON>;
