import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { PAGE_ROUTE, admitUser } from '../shell/admission.js';
import { person } from '../shell/person.js';
import { eventOf } from './account-page.js';

/** The number of events on the overview. */
const EVENTS_SHOWN = 5;

/** Serves `/account`, the overview of a user's own account, and `/enroll/done`, the page after the first enrollment. */
@Controller()
@Route(PAGE_ROUTE)
export class OverviewPageController {
  constructor(
    private readonly account: OwnAccount,
    private readonly views: Views,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Get('account')
  @Route({ summary: 'Shows the account of the user' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const session = admitUser(caller, request, response);
    if (!session) return;
    const { id } = session.user;
    const [open, { items }] = await Promise.all([
      this.account.countOpen(id),
      this.account.activity(id, { after: undefined, limit: EVENTS_SHOWN }),
    ]);
    const page = {
      person: person(session),
      server: this.config.http.baseUrl,
      open,
      events: items.map((event) => eventOf(event, id)),
    };
    response.type('html').send(this.views.render('account-overview', page));
  }

  @Get('enroll/done')
  @Route({ summary: 'Shows the next steps after the first enrollment' })
  async enrolled(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const session = admitUser(caller, request, response);
    if (!session) return;
    const { keys } = await this.account.countOpen(session.user.id);
    const page = { person: person(session), server: this.config.http.baseUrl, keys };
    response.type('html').send(this.views.render('enroll-done', page));
  }
}
