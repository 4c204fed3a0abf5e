import { Controller, Delete, Get, HttpCode, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { USER_ACCESS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { sessionJson, SESSIONS_JSON, type SessionJson } from './session-json.js';

/** The path parameter of a session. A text that is no UUID gets 404, and not 400. */
const SESSION_ID = z.object({ id: z.string().describe('The id of the session.') });

const count = z.int().min(0);
const ENDED_OTHERS = z
  .object({
    ended: z
      .object({
        sessions: count.describe('The ended sessions.'),
        grants: count.describe('The ended OAuth grants.'),
        tokens: count.describe('The ended OAuth tokens.'),
      })
      .describe('The numbers of what ended.'),
  })
  .describe('What ended with the other sessions.');

/**
 * Serves `/v1/sessions`: the sessions of the current user. The id of another user's session gets
 * 404.
 */
@Controller('v1/sessions')
@Route({
  tier: 'general',
  audience: 'api',
  errors: 'problem',
  auth: USER_ACCESS,
})
export class SessionsController {
  constructor(
    private readonly sessions: Sessions,
    private readonly cookies: SessionCookies,
  ) {}

  @Get()
  @Route({
    operation: 'listSessions',
    summary: 'Lists the sessions of the user',
    answers: { 200: SESSIONS_JSON },
  })
  async list(@Caller() session: VerifiedSession): Promise<{ sessions: SessionJson[] }> {
    const sessions = await this.sessions.list(session.user.id);
    return { sessions: sessions.map((own) => sessionJson(own, session.id)) };
  }

  /**
   * Ends every session of the user except the session of the request. If there is no other session,
   * nothing changes.
   */
  @Post('end-others')
  @HttpCode(200)
  @Route({
    operation: 'endOtherSessions',
    summary: 'Ends every other session of the user',
    answers: { 200: ENDED_OTHERS },
  })
  async endOthers(
    @Caller() session: VerifiedSession,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<z.output<typeof ENDED_OTHERS>> {
    return { ended: await this.sessions.endOthers(session, origin) };
  }

  /**
   * Ends a session. If it is the session of this request, the response also removes the session
   * cookie.
   */
  @Delete(':id')
  @Route({
    operation: 'endSession',
    summary: 'Ends a session of the user',
    answers: { 204: null },
    refusals: ['not_found'],
  })
  @HttpCode(204)
  async end(
    @Caller() session: VerifiedSession,
    @Param({ schema: SESSION_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @Res({ passthrough: true }) response: Response,
  ): Promise<void> {
    await this.sessions.endOwn(session.user, id, origin);
    if (id.toLowerCase() === session.id) this.cookies.clear(response);
  }
}
