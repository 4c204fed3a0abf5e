import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { LiveSession } from '#domain/sessions/session.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { PAGE_ROUTE, admitUser } from '../shell/admission.js';
import { person } from '../shell/person.js';

/** Serves `/account`: the overview of a user's own account. */
@Controller('account')
@Route(PAGE_ROUTE)
export class OverviewPageController {
  constructor(private readonly views: Views) {}

  @Get()
  @Route({ summary: 'Shows the account of the user' })
  show(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): void {
    const session = admitUser(caller, request, response);
    if (!session) return;
    response.type('html').send(this.views.render('account-overview', { person: person(session) }));
  }
}
