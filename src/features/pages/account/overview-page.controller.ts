import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { noticesOf } from '../shell/account-notices.js';
import { eventDays } from '../shell/event-days.js';
import { moment } from '../shell/moment.js';
import { showToUser } from '../shell/show-page.js';
import { eventOf } from './account-page.js';

/** The most events on the overview. */
const EVENTS_SHOWN = 5;

/**
 * Serves `/account`, the overview of a user's own account, and `/enroll/done`, the page after the
 * first enrollment.
 */
@Controller()
@Route(PAGE_ROUTE)
export class OverviewPageController {
  constructor(
    private readonly account: OwnAccount,
    private readonly views: Views,
    private readonly cookies: SessionCookies,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Get('account')
  @Route({ summary: 'Shows the account of the user' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await showToUser(this.views, { caller, response }, 'account-overview', async (session) => {
      const { id } = session.user;
      const [open, { items }, letters, notices] = await Promise.all([
        this.account.countOpen(id),
        this.account.activity(id, { after: undefined, limit: EVENTS_SHOWN }),
        this.account.deadLetters(session.user),
        noticesOf(this.account, session),
      ]);
      return {
        server: this.config.http.baseUrl,
        open,
        // A user with one key logged in with that key. The cookie by which the user hid the warning
        // names the key, so the key of this session is compared.
        isAtRisk: open.keys === 1 && !this.cookies.hasDismissed(request, session.authenticatorId),
        notices,
        // True if the page loads the script of the forms that send undelivered logout notices
        // again. Only a user without an organization gets these forms. The script is loaded even if
        // no such notice is left, because it also shows the outcome of the last form.
        hasOwn: session.user.orgId === null,
        letters: letters.map((letter) => ({
          ...letter,
          application: letter.clientName ?? letter.clientId,
          created: moment(letter.createdAt),
        })),
        days: eventDays(items.map((event) => eventOf(event, id))),
      };
    });
  }

  @Get('enroll/done')
  @Route({ summary: 'Shows the next steps after the first enrollment' })
  async enrolled(
    @Caller() caller: LiveSession | undefined,
    @Res() response: Response,
  ): Promise<void> {
    await showToUser(this.views, { caller, response }, 'enroll-done', async (session) => {
      const { keys } = await this.account.countOpen(session.user.id);
      return { server: this.config.http.baseUrl, keys };
    });
  }
}
