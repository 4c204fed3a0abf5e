import { Controller, Get, Inject, Post, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { allowedModels, type AllowedModels } from '#domain/keys/authenticators/model-policy.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { assertMayEnroll } from '#domain/keys/enrollment/enrollment-policy.js';
import { EnrollmentPasses } from '#domain/keys/enrollment-passes/enrollment-passes.service.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { sameOriginTarget } from '#platform/http/request/same-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { person } from './shell/person.js';

const QUERY = z.object({ redirect_to: z.string().max(2048).optional() });

/** Serves the page on which a user enrolls a security key, and the logout. */
@Controller()
@Route({
  tier: 'general',
  audience: 'ui',
  errors: 'html',
  auth: { session: 'optional', origin: 'ui' },
})
export class AccountPagesController {
  readonly #baseUrl: string;
  readonly #models: AllowedModels;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly cookies: SessionCookies,
    private readonly views: Views,
    private readonly sessions: Sessions,
    private readonly passes: EnrollmentPasses,
  ) {
    this.#baseUrl = config.http.baseUrl;
    this.#models = allowedModels(config.enrollment.allowedAaguids);
  }

  /**
   * Shows the page on which a user enrolls a security key. It has a field for a re-enrollment pass
   * if the user needs one from an admin.
   *
   * @throws DomainError already_enrolled (403) for a user who has a key
   */
  @Get('enroll')
  @Route({ summary: 'Shows the page that enrolls a security key' })
  async enroll(
    @Caller() session: LiveSession | undefined,
    @Query({ schema: QUERY }) query: z.output<typeof QUERY>,
    @Res() response: Response,
  ): Promise<void> {
    if (!session) {
      this.#askToLogIn(response, '/enroll');
      return;
    }
    assertMayEnroll(session, this.config.enrollment.allowedDomains);
    const redirectTo = sameOriginTarget(query.redirect_to, this.#baseUrl);
    this.#show(response, 'enroll', {
      person: person(session),
      redirectTo,
      models: this.#models,
      needsPass: session.user !== null && (await this.passes.isDemanded(session.user.id)),
    });
  }

  /**
   * Ends the session of every session cookie in the request. Another host of the domain may have
   * set a second cookie, which must keep no session open. The body is not read, so that a malformed
   * body cannot prevent the logout.
   */
  @Post('logout')
  @Route({ body: { kind: 'none' }, summary: 'Ends the session of the browser' })
  async logOut(
    @ClientOrigin() origin: AuditOrigin,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    for (const token of this.cookies.everyToken(request)) {
      await this.sessions.logOut(token, origin);
    }
    this.cookies.clear(response);
    response.redirect(303, '/');
  }

  #show(response: Response, view: string, data: object): void {
    response.type('html').send(this.views.render(view, data));
  }

  #askToLogIn(response: Response, back: string): void {
    response.redirect(303, `/login?redirect_to=${encodeURIComponent(back)}`);
  }
}
