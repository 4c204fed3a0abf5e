import { Readable } from 'node:stream';
import { Controller, Get, Query, Req, Res, StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditRow } from '#domain/audit/audit-events.repository.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { logError } from '#platform/http/errors/error-log.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { AUDIT_QUERY, auditJson, type AuditJson, type AuditQuery } from './audit-log.schemas.js';
import { AuditEvents } from './audit-log.service.js';

const NDJSON = 'application/x-ndjson';

/** `GET /api/v1/org/audit-events`: a page of the audit log of the organization, or all events as lines (NDJSON). */
@Controller('api/v1/org/audit-events')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_READS })
export class AuditLogController {
  constructor(private readonly auditEvents: AuditEvents) {}

  @Get()
  @Route({ summary: 'Lists the audit events of the organization' })
  async list(
    @Caller() session: VerifiedSession,
    @Query({ schema: AUDIT_QUERY }) query: AuditQuery,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<StreamableFile | { readonly events: AuditJson[]; readonly next: string | null }> {
    const admin = adminOf(session);
    response.vary('Accept');
    if (request.accepts(['json', NDJSON]) === NDJSON) {
      const batches = await this.auditEvents.batches(admin, query);
      return new StreamableFile(Readable.from(linesOf(batches)), { type: NDJSON }).setErrorHandler(
        cutOff,
      );
    }
    const { events, next } = await this.auditEvents.page(admin, query);
    return { events: events.map(auditJson), next };
  }
}

async function* linesOf(batches: AsyncIterable<readonly AuditRow[]>): AsyncGenerator<string> {
  for await (const batch of batches) {
    yield batch.map((row) => `${JSON.stringify(auditJson(row))}\n`).join('');
  }
}

/** Closes the connection when a batch fails, so that a client does not take a part for the whole log. */
function cutOff(error: Error, response: { readonly destroy?: () => void }): void {
  logError(asDomainError(error));
  response.destroy?.();
}
