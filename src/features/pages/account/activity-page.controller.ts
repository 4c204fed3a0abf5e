import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE, admitUser } from '../shell/admission.js';
import { person } from '../shell/person.js';
import { PAGE_QUERY, eventOf, pagingOf, rangeOf } from './account-page.js';

/** Serves `/account/activity`: the audit events of the user, in words. */
@Controller('account/activity')
@Route(PAGE_ROUTE)
export class ActivityPageController {
  constructor(
    private readonly account: OwnAccount,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows the audit events of the user' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: PAGE_QUERY }) query: z.output<typeof PAGE_QUERY>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const session = admitUser(caller, request, response);
    if (!session) return;
    const range = rangeOf(query);
    const { items, next } = await this.account.activity(session.user.id, range);
    const page = {
      person: person(session),
      events: items.map((event) => eventOf(event, session.user.id)),
      paging: pagingOf('/account/activity', range, next),
    };
    response.type('html').send(this.views.render('own-activity', page));
  }
}
