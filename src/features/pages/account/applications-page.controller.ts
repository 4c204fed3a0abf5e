import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { OwnApplications } from '#domain/account/applications/own-applications.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE, admitUser } from '../shell/admission.js';
import { moment } from '../shell/moment.js';
import { person } from '../shell/person.js';

/** Serves `/account/applications`: the applications that the user signed in to. */
@Controller('account/applications')
@Route(PAGE_ROUTE)
export class OwnApplicationsPageController {
  constructor(
    private readonly applications: OwnApplications,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows the applications that the user signed in to' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const session = admitUser(caller, request, response);
    if (!session) return;
    const applications = await this.applications.list(session.user.id);
    const page = {
      person: person(session),
      applications: applications.map((application) => ({
        ...application,
        path: `/v1/account/applications/${encodeURIComponent(application.id)}`,
        since: moment(application.since),
        lastUsed: application.lastUsedAt && moment(application.lastUsedAt),
      })),
    };
    response.type('html').send(this.views.render('own-applications', page));
  }
}
