import { Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { ApplicationNotices } from '#domain/oauth/applications/application-notices.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Route } from '#platform/http/routing/route.js';
import { NOTICES_JSON, noticesJson, type NoticesJson } from './application-json.js';
import { APPLICATION_READS, APPLICATION_WRITES, managerOf } from './application-manager.js';
import { APPLICATION_ID, NOTICE_ID } from './applications.schemas.js';

/**
 * `/api/v1/applications/{id}/logout-notices`: the logout tokens that wait for delivery to an
 * application, and those that could not be delivered (OpenID Connect Back-Channel Logout 1.0). Only
 * admins may use it.
 */
@Controller('api/v1/applications/:id/logout-notices')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: APPLICATION_WRITES })
export class ApplicationNoticesController {
  constructor(private readonly notices: ApplicationNotices) {}

  @Get()
  @Route({
    auth: APPLICATION_READS,
    operation: 'listLogoutNotices',
    summary: 'Lists the logout notices that an application did not take',
    answers: { 200: NOTICES_JSON },
    refusals: ['not_found', 'admin_required'],
  })
  async list(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
  ): Promise<NoticesJson> {
    return noticesJson(await this.notices.list(managerOf(session), id));
  }

  @Post(':noticeId/repeat')
  @Route({
    operation: 'repeatLogoutNotice',
    summary: 'Sends a logout notice again',
    answers: { 204: null },
    refusals: ['not_found', 'admin_required'],
  })
  @HttpCode(204)
  async repeat(
    @Caller() session: VerifiedSession,
    @Param({ schema: NOTICE_ID }) { id, noticeId }: { id: string; noticeId: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.notices.repeat(managerOf(session), id, noticeId, origin);
  }

  @Delete(':noticeId')
  @Route({
    operation: 'dropLogoutNotice',
    summary: 'Drops a logout notice',
    answers: { 204: null },
    refusals: ['not_found', 'admin_required'],
  })
  @HttpCode(204)
  async drop(
    @Caller() session: VerifiedSession,
    @Param({ schema: NOTICE_ID }) { id, noticeId }: { id: string; noticeId: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.notices.drop(managerOf(session), id, noticeId, origin);
  }
}
