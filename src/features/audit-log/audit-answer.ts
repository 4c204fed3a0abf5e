import type { StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditRow } from '#domain/audit/audit-filter.js';
import type { FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { auditJson, feedJson } from '#domain/audit/feed/event-json.js';
import { writeFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import type { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import type { Reader } from '#domain/directory/api-tokens/reader.js';
import {
  fileOf,
  inEveryFormat,
  linesOf,
  preferredFormat,
  tableOf,
} from '#platform/http/files/line-file.js';
import type { PolicyChanges } from '#platform/http/routing/route-policy.js';
import { AUDIT_COLUMNS } from './audit-csv.js';
import { ocsfEvent } from './ocsf-event.js';
import {
  AUDIT_PAGE_JSON,
  auditQuery,
  feedQuery,
  sealedPlace,
  type AuditFormat,
  type AuditPageJson,
  type AuditRequest,
} from './audit-log.schemas.js';

/** The name of an exported file, without its extension. */
const FILE = 'audit';

/** The answers and the errors that all routes of the audit log share. */
export const AUDIT_ANSWERS = {
  answers: {
    200: inEveryFormat(AUDIT_PAGE_JSON),
  },
  refusals: ['too_many', 'feed_restarted'],
} as const satisfies PolicyChanges;

/** A request for the audit log, with its response. */
interface AuditExchange {
  readonly asked: AuditRequest;
  readonly request: Request;
  readonly response: Response;
}

/**
 * Answers a request for the audit log of an organization, for an admin or a program. The answer is
 * a page of events as JSON, or a file with all events as lines.
 */
export async function answerAudit(
  auditEvents: AuditEvents,
  reader: Reader,
  { asked, request, response }: AuditExchange,
): Promise<StreamableFile | AuditPageJson> {
  const query = auditQuery(asked);
  const preferred = preferredFormat(request, response);
  const format = asked.format ?? preferred;
  if (asked.order === 'asc') {
    return answerFeed(auditEvents, reader, { asked, request, response }, format);
  }
  if (format !== 'json') {
    const batches = await auditEvents.batches(reader, query);
    if (format === 'csv') return fileOf('csv', FILE, tableOf(batches, AUDIT_COLUMNS));
    const render = format === 'ocsf' ? (row: AuditRow) => ocsfEvent(row) : auditJson;
    return fileOf('ndjson', FILE, linesOf(batches, render));
  }
  const { events, next } = await auditEvents.page(reader, query);
  return { events: events.map(auditJson), next };
}

/**
 * Answers a request with `order=asc`, the oldest event first, the order for programs. The answer is
 * one page as JSON, or in another format the events up to the present end of the log, one on each
 * line. If no event matches, the header `Link` has the URL with the cursor from which to go on.
 */
async function answerFeed(
  auditEvents: AuditEvents,
  reader: Reader,
  { asked, request, response }: AuditExchange,
  format: AuditFormat,
): Promise<StreamableFile | AuditPageJson> {
  if (format === 'sealed') {
    const parts = await auditEvents.sealed(reader, sealedPlace(asked));
    return fileOf('ndjson', FILE, sealedLines(parts));
  }
  const query = feedQuery(asked);
  if (format === 'json') {
    const { events, next } = await auditEvents.feed(reader, query);
    return { events: events.map(feedJson), next };
  }
  const { batches, next } = await auditEvents.feedLines(reader, query, closed(response));
  if (next !== undefined) response.links({ next: withAfter(request, next) });
  const render = format === 'ocsf' ? feedOcsf : feedJson;
  return fileOf('ndjson', FILE, linesOf(batches, render));
}

async function* sealedLines(parts: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  for await (const lines of parts) yield lines.map((line) => `${line}\n`).join('');
}

/** Returns a signal that is aborted if the connection of a response is closed. */
function closed(response: Response): AbortSignal {
  const closing = new AbortController();
  response.once('close', () => {
    closing.abort();
  });
  return closing.signal;
}

/** Returns the path and the query of a request, with another cursor in the parameter `after`. */
function withAfter({ originalUrl }: Request, cursor: string): string {
  const { pathname, searchParams } = new URL(originalUrl, 'http://localhost');
  searchParams.set('after', cursor);
  return `${pathname}?${searchParams.toString()}`;
}

function feedOcsf(row: FeedRow): object {
  return ocsfEvent(row, writeFeedCursor(row.feedPlace));
}
