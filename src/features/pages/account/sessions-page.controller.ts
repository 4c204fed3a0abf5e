import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { displayName } from '#domain/grants/clients/display-name.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { PAGE_ROUTE, admitUser } from '../shell/admission.js';
import { moment } from '../shell/moment.js';
import { person } from '../shell/person.js';

/** Serves `/account/sessions`, where users list their sessions and end one with all its tokens. */
@Controller('account/sessions')
@Route(PAGE_ROUTE)
export class SessionsPageController {
  constructor(
    private readonly sessions: Sessions,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows the sessions of the user' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const session = admitUser(caller, request, response);
    if (!session) return;
    const sessions = await this.sessions.list(session.user.id);
    const page = {
      person: person(session),
      sessions: sessions.map((own) => ({
        ...own,
        title: own.client ? titleOf(own.client) : 'A browser',
        opened: moment(own.createdAt),
        expires: moment(own.expiresAt),
        current: own.id === session.id,
      })),
    };
    response.type('html').send(this.views.render('sessions', page));
  }
}

/** Names the client that has a session for itself, on one line. */
function titleOf({ id, name }: { readonly id: string; readonly name: string | null }): string {
  return displayName({ clientId: id, clientName: name ?? undefined });
}
