import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { displayName } from '#domain/oauth/clients/display-name.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { deviceOf } from '#platform/text/device-name.js';
import { moment } from '../shell/moment.js';
import { showToUser } from '../shell/show-page.js';

/**
 * Serves `/account/sessions`, where users list their sessions, and end a session with all its
 * tokens.
 */
@Controller('account/sessions')
@Route(PAGE_ROUTE)
export class SessionsPageController {
  constructor(
    private readonly sessions: Sessions,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows the sessions of the user' })
  async show(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToUser(this.views, { caller, response }, 'sessions', async (session) => {
      const sessions = await this.sessions.list(session.user.id);
      return {
        sessions: sessions.map((own) => ({
          ...own,
          title: own.client ? titleOf(own.client) : 'A browser',
          device: deviceOf(own.userAgent),
          opened: moment(own.createdAt),
          expires: moment(own.expiresAt),
          current: own.id === session.id,
        })),
      };
    });
  }
}

/**
 * Returns the name of a client on one line. It is the title of a session that belongs to the client
 * and not to a browser.
 */
function titleOf({ id, name }: { readonly id: string; readonly name: string | null }): string {
  return displayName({ clientId: id, clientName: name ?? undefined });
}
