import { Readable } from 'node:stream';
import { Controller, Get, Query, Req, Res, StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditRow } from '#domain/audit/audit-events.repository.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { logError } from '#platform/http/errors/error-log.js';
import { Caller } from '#platform/http/access/access.js';
import { Route } from '#platform/http/routing/route.js';
import { ADMIN_READS, adminOf } from './admin.js';
import { AUDIT_QUERY, auditJson, type AuditJson, type AuditQuery } from './audit-events.schemas.js';
import { AuditEvents } from './audit-events.service.js';

const NDJSON = 'application/x-ndjson';

/** `GET /api/v1/org/audit-events`: the organization's own log, a page of it, or all of it as lines (NDJSON). */
@Controller('api/v1/org/audit-events')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_READS })
export class AuditEventsController {
  constructor(private readonly audit: AuditEvents) {}

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
      const batches = await this.audit.batches(admin, query);
      return new StreamableFile(Readable.from(linesOf(batches)), { type: NDJSON }).setErrorHandler(
        cutOff,
      );
    }
    const { events, next } = await this.audit.page(admin, query);
    return { events: events.map(auditJson), next };
  }
}

async function* linesOf(batches: AsyncIterable<readonly AuditRow[]>): AsyncGenerator<string> {
  for await (const batch of batches) {
    yield batch.map((row) => `${JSON.stringify(auditJson(row))}\n`).join('');
  }
}

/** Ends an answer that cannot be sent whole, with its connection: a client that got a part does not take it for all there is. */
function cutOff(error: Error, response: { readonly destroy?: () => void }): void {
  logError(asDomainError(error));
  response.destroy?.();
}
