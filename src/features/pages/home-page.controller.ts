import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { PAGE_ROUTE } from './shell/admission.js';
import { noticesOf } from './shell/account-notices.js';
import { timeLeft } from './shell/moment.js';
import { person } from './shell/person.js';
import { launcherOf } from './account/reach-words.js';

/**
 * Serves `/`: a welcome for a visitor, and the applications, hosts, roles and clusters of a user
 * who has logged in with a security key.
 */
@Controller()
@Route(PAGE_ROUTE)
export class HomePageController {
  constructor(
    private readonly account: OwnAccount,
    private readonly views: Views,
    private readonly clock: Clock,
  ) {}

  @Get()
  @Route({ tier: 'unlimited', summary: 'Shows the start page' })
  async show(@Caller() session: LiveSession | undefined, @Res() response: Response): Promise<void> {
    const launcher =
      session?.level === 'verified'
        ? {
            left: timeLeft(session.expiresAt, this.clock.now()),
            notices: await noticesOf(this.account, session),
            ...launcherOf(await this.account.reach(session.user)),
          }
        : {};
    const page = { person: person(session), ...launcher };
    response.type('html').send(this.views.render('home', page));
  }
}
