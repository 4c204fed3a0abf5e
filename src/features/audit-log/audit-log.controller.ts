import { Controller, Get, Query, Req, Res, type StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { answerAudit, AUDIT_ANSWERS } from './audit-answer.js';
import { AUDIT_QUERY, type AuditPageJson, type AuditRequest } from './audit-log.schemas.js';

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
    operation: 'listAuditEvents',
    summary: 'Lists the audit events of the organization',
    ...AUDIT_ANSWERS,
  })
  list(
    @Caller() session: VerifiedSession,
    @Query({ schema: AUDIT_QUERY }) asked: AuditRequest,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<StreamableFile | AuditPageJson> {
    return answerAudit(this.auditEvents, adminOf(session), { asked, request, response });
  }
}
