import { Controller, Get, Query, Req, Res, type StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import type { Program } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { forPrograms } from '#domain/sessions/program-itself.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { answerAudit, AUDIT_ANSWERS } from './audit-answer.js';
import { AUDIT_QUERY, type AuditPageJson, type AuditRequest } from './audit-log.schemas.js';

/**
 * `GET /api/v1/programs/audit-events`: the audit log of the organization for a program, which reads
 * it by its API token.
 */
@Controller('api/v1/programs/audit-events')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: forPrograms('audit:read') })
export class ProgramAuditController {
  constructor(private readonly auditEvents: AuditEvents) {}

  @Get()
  @Route({
    operation: 'listAuditEventsForProgram',
    summary: 'Lists the audit events of the organization to a program',
    ...AUDIT_ANSWERS,
  })
  list(
    @Caller() program: Program,
    @Query({ schema: AUDIT_QUERY }) asked: AuditRequest,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<StreamableFile | AuditPageJson> {
    return answerAudit(this.auditEvents, program, { asked, request, response });
  }
}
