import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { OwnAccount } from '#domain/account/own-account.service.js';
import { MOST_TARGETS } from '#domain/account/own-reach/own-reach.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { showToUser } from '../shell/show-page.js';
import { reachedKinds } from './reach-words.js';

/**
 * Serves `/account/reach`: the targets (hosts, roles, applications) that admit the user, with the
 * conditions of each target and the reason why it admits the user.
 */
@Controller('account/reach')
@Route(PAGE_ROUTE)
export class ReachPageController {
  constructor(
    private readonly account: OwnAccount,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows what the user can reach' })
  async show(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToUser(this.views, { caller, response }, 'own-reach', async (session) => {
      const kinds = reachedKinds(await this.account.reach(session.user));
      const number = kinds.reduce((sum, { targets }) => sum + targets.length, 0);
      const isWhole = kinds.every(({ targets }) => targets.length < MOST_TARGETS);
      return { kinds, number, isWhole };
    });
  }
}
