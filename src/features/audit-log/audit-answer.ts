import { Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditRow } from '#domain/audit/audit-filter.js';
import type { FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { auditJson, feedJson } from '#domain/audit/feed/event-json.js';
import { writeFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import type { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import type { Reader } from '#domain/directory/api-tokens/reader.js';
import { cutOff } from '#platform/http/errors/cut-off.js';
import type { PolicyChanges } from '#platform/http/routing/route-policy.js';
import { CSV_HEADER, eventLine } from './audit-csv.js';
import { ocsfEvent } from './ocsf-event.js';
import {
  AUDIT_PAGE_JSON,
  auditQuery,
  feedQuery,
  FORMATS,
  mediaTypeOf,
  sealedPlace,
  type AuditPageJson,
  type AuditRequest,
} from './audit-log.schemas.js';

type Batches = AsyncIterable<readonly AuditRow[]>;

/** The rules that the routes of the audit log share. */
export const AUDIT_ANSWERS = {
  answers: {
    200: { [FORMATS.json]: AUDIT_PAGE_JSON, [FORMATS.ndjson]: 'text', [FORMATS.csv]: 'text' },
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
 * Answers a request for the audit log of an organization, for an admin or a program: a page, or all
 * events as lines, in the order that the request asks for.
 */
export async function answerAudit(
  auditEvents: AuditEvents,
  reader: Reader,
  { asked, request, response }: AuditExchange,
): Promise<StreamableFile | AuditPageJson> {
  const query = auditQuery(asked);
  response.vary('Accept');
  const format = asked.format ? mediaTypeOf(asked.format) : preferred(request);
  if (asked.order === 'asc') return answerFeed(auditEvents, reader, asked, format);
  if (format !== FORMATS.json) {
    const batches = await auditEvents.batches(reader, query);
    const render = asked.format === 'ocsf' ? (row: AuditRow) => ocsfEvent(row) : auditJson;
    const [lines, extension] =
      format === FORMATS.csv ? [tableOf(batches), 'csv'] : [linesOf(batches, render), 'ndjson'];
    const file = { type: format, disposition: `attachment; filename="audit.${extension}"` };
    return new StreamableFile(Readable.from(lines), file).setErrorHandler(cutOff);
  }
  const { events, next } = await auditEvents.page(reader, query);
  return { events: events.map(auditJson), next };
}

/**
 * Answers a request with `order=asc`, the order for programs: one page as JSON, or in another
 * format all events up to the present end of the feed, one on each line.
 */
async function answerFeed(
  auditEvents: AuditEvents,
  reader: Reader,
  asked: AuditRequest,
  format: string,
): Promise<StreamableFile | AuditPageJson> {
  if (asked.format === 'sealed') {
    return fileOf(sealedLines(await auditEvents.sealed(reader, sealedPlace(asked))));
  }
  const query = feedQuery(asked);
  if (format === FORMATS.json) {
    const { events, next } = await auditEvents.feed(reader, query);
    return { events: events.map(feedJson), next };
  }
  const batches = await auditEvents.feedBatches(reader, query);
  const render = asked.format === 'ocsf' ? feedOcsf : feedJson;
  return fileOf(linesOf(batches, render));
}

/** Answers with lines as a file. */
function fileOf(lines: AsyncIterable<string>): StreamableFile {
  const file = { type: FORMATS.ndjson, disposition: 'attachment; filename="audit.ndjson"' };
  return new StreamableFile(Readable.from(lines), file).setErrorHandler(cutOff);
}

async function* sealedLines(parts: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  for await (const lines of parts) yield lines.map((line) => `${line}\n`).join('');
}

/** Returns the format that a client prefers; JSON if it accepts none of them. */
function preferred(request: Request): string {
  return request.accepts([FORMATS.json, FORMATS.ndjson, FORMATS.csv]) || FORMATS.json;
}

function feedOcsf(row: FeedRow): object {
  return ocsfEvent(row, writeFeedCursor(row.feedPlace));
}

async function* linesOf<Row>(
  batches: AsyncIterable<readonly Row[]>,
  render: (row: Row) => object,
): AsyncGenerator<string> {
  for await (const batch of batches) {
    yield batch.map((row) => `${JSON.stringify(render(row))}\n`).join('');
  }
}

async function* tableOf(batches: Batches): AsyncGenerator<string> {
  yield CSV_HEADER;
  for await (const batch of batches) yield batch.map(eventLine).join('');
}
