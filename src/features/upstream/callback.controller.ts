import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { IdentityProviders } from '#domain/providers/identity-providers.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { UpstreamLogin } from '#domain/sign-in/upstream-login/upstream-login.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { goOn } from './signed-in.js';

/** Serves `GET /oauth/callback`, to which an upstream OpenID provider redirects the browser. */
@Controller('oauth/callback')
@Route({
  tier: 'unlimited',
  audience: 'api',
  errors: 'html',
  head: false,
  auth: { session: 'optional', origin: 'any' },
})
export class CallbackController {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly providers: IdentityProviders,
    private readonly upstreamLogin: UpstreamLogin,
    private readonly cookies: SessionCookies,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  @Get()
  @Route({ summary: 'Takes the browser back from an identity provider' })
  async complete(
    @Caller() previous: LiveSession | undefined,
    @ClientOrigin() origin: AuditOrigin,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const returned = await this.providers.resume({
      url: new URL(request.originalUrl, this.#baseUrl),
      // Without the cookie no `state` matches, because a `state` is bound to the browser that began
      // the sign-in.
      browser: this.cookies.browserSecret(request) ?? '',
    });
    const signedIn = await this.upstreamLogin.signIn(returned, origin, previous);
    const { redirectTo } = returned;
    goOn(response, this.cookies, signedIn, { baseUrl: this.#baseUrl, redirectTo });
  }
}
