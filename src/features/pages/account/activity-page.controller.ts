import { Controller, Get, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { z } from 'zod';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { eventDays } from '../shell/event-days.js';
import { showToUser } from '../shell/show-page.js';
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
    @Res() response: Response,
  ): Promise<void> {
    await showToUser(this.views, { caller, response }, 'own-activity', async (session) => {
      const range = rangeOf(query);
      const { items, next } = await this.account.activity(session.user.id, range);
      return {
        days: eventDays(items.map((event) => eventOf(event, session.user.id))),
        paging: pagingOf('/account/activity', range, next),
      };
    });
  }
}
