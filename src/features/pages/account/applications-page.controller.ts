import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { OwnAccess } from '#domain/account/own-access.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { moment } from '../shell/moment.js';
import { showToUser } from '../shell/show-page.js';

/** Serves `/account/applications`: the applications that the user signed in to. */
@Controller('account/applications')
@Route(PAGE_ROUTE)
export class OwnApplicationsPageController {
  constructor(
    private readonly access: OwnAccess,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows the applications that the user signed in to' })
  async show(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToUser(this.views, { caller, response }, 'own-applications', async (session) => {
      const applications = await this.access.applications(session.user.id);
      return {
        applications: applications.map((application) => ({
          ...application,
          path: `/v1/account/applications/${encodeURIComponent(application.id)}`,
          since: moment(application.since),
          lastUsed: application.lastUsedAt && moment(application.lastUsedAt),
        })),
      };
    });
  }
}
