import { Readable } from 'node:stream';
import { Controller, Get, Query, Req, Res, StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditRow } from '#domain/audit/audit-filter.js';
import type { FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { writeFeedCursor } from '#domain/admin/audit-search/audit-cursor.js';
import { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import { adminOf } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { ADMIN_READS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { cutOff } from '#platform/http/errors/cut-off.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { CSV_HEADER, eventLine } from './audit-csv.js';
import { ocsfEvent } from './ocsf-event.js';
import {
  AUDIT_PAGE_JSON,
  AUDIT_QUERY,
  auditJson,
  auditQuery,
  feedJson,
  feedQuery,
  FORMATS,
  mediaTypeOf,
  type AuditPageJson,
  type AuditRequest,
} from './audit-log.schemas.js';

type Batches = AsyncIterable<readonly AuditRow[]>;

/**
 * `GET /api/v1/org/audit-events`: a page of the audit log of the organization, or all events as
 * lines (NDJSON, CSV).
 */
@Controller('api/v1/org/audit-events')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_READS })
export class AuditLogController {
  constructor(private readonly auditEvents: AuditEvents) {}

  @Get()
  @Route({
    summary: 'Lists the audit events of the organization',
    answers: {
      200: { [FORMATS.json]: AUDIT_PAGE_JSON, [FORMATS.ndjson]: 'text', [FORMATS.csv]: 'text' },
    },
    refusals: ['too_many', 'feed_restarted'],
  })
  async list(
    @Caller() session: VerifiedSession,
    @Query({ schema: AUDIT_QUERY }) asked: AuditRequest,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<StreamableFile | AuditPageJson> {
    const admin = adminOf(session);
    const query = auditQuery(asked);
    response.vary('Accept');
    const format = asked.format ? mediaTypeOf(asked.format) : preferred(request);
    if (asked.order === 'asc') return this.#feed(admin, asked, format);
    if (format !== FORMATS.json) {
      const batches = await this.auditEvents.batches(admin, query);
      const render = asked.format === 'ocsf' ? (row: AuditRow) => ocsfEvent(row) : auditJson;
      const [lines, extension] =
        format === FORMATS.csv ? [tableOf(batches), 'csv'] : [linesOf(batches, render), 'ndjson'];
      const file = { type: format, disposition: `attachment; filename="audit.${extension}"` };
      return new StreamableFile(Readable.from(lines), file).setErrorHandler(cutOff);
    }
    const { events, next } = await this.auditEvents.page(admin, query);
    return { events: events.map(auditJson), next };
  }

  /**
   * Answers a request with `order=asc`, the order for programs: one page as JSON, or in another
   * format all events up to the present end of the feed, one on each line.
   */
  async #feed(
    admin: Admin,
    asked: AuditRequest,
    format: string,
  ): Promise<StreamableFile | AuditPageJson> {
    const query = feedQuery(asked);
    if (format === FORMATS.json) {
      const { events, next } = await this.auditEvents.feed(admin, query);
      return { events: events.map(feedJson), next };
    }
    const batches = await this.auditEvents.feedBatches(admin, query);
    const render = asked.format === 'ocsf' ? feedOcsf : feedJson;
    const file = { type: FORMATS.ndjson, disposition: 'attachment; filename="audit.ndjson"' };
    return new StreamableFile(Readable.from(linesOf(batches, render)), file).setErrorHandler(
      cutOff,
    );
  }
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
