import { Body, Controller, Get, Inject, Post, Req, Res, type OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { Views } from '#platform/http/views/views.service.js';
import { ENDPOINT_PATHS } from '#domain/oauth/applications/endpoints.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import type { KoaContextWithOIDC } from '../protocol/library.js';
import { queryOf, requestOf, responseOf, type FormFields } from '../request/request-context.js';
import { logoutPage } from './logout-page.js';

/**
 * `/oauth/logout`: ends the session of a browser that an application redirects to this page to log
 * out (OpenID Connect RP-Initiated Logout 1.0).
 */
@Controller('oauth/logout')
@Route({ tier: 'general', audience: 'navigation', errors: 'html', auth: PUBLIC })
export class LogoutController implements OnModuleInit {
  readonly #endpoint: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidcProvider: OidcProvider,
    private readonly sessions: Sessions,
    private readonly sessionCookies: SessionCookies,
    private readonly views: Views,
  ) {
    this.#endpoint = `${config.http.baseUrl}${ENDPOINT_PATHS.end_session}`;
  }

  /**
   * Makes the endpoint show our own pages. The pages of the OAuth library contain a script that our
   * Content-Security-Policy forbids.
   */
  onModuleInit(): void {
    this.oidcProvider.after('end_session', async (ctx) => {
      if (ctx.status !== 200) return;
      const token = this.sessionCookies.token(requestOf(ctx));
      const preview = token === undefined ? undefined : await this.sessions.previewLogout(token);
      this.#render(ctx, 'end-session', logoutPage(ctx, token !== undefined, preview));
    });
    this.oidcProvider.after('end_session_success', (ctx) => {
      if (ctx.body === undefined) this.#render(ctx, 'logged-out', {});
    });
    this.oidcProvider.after('end_session_confirm', async (ctx) => {
      if (ctx.status === 303) await this.#endSession(ctx);
    });
  }

  @Get()
  @Route({
    anonymousRows: true,
    summary: 'Asks whether to log out (OpenID Connect RP-Initiated Logout)',
  })
  logOut(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#answerWithPage(request, response);
  }

  /**
   * Redirects a POST to a GET with the same fields (RP-Initiated Logout §2). In a POST from another
   * site, a browser sends no cookie with `SameSite=Lax`.
   */
  @Post()
  @Route({ body: { kind: 'fields' }, summary: 'Asks whether to log out, by a form' })
  logOutByPost(@Body() fields: FormFields, @Res() response: Response): void {
    response.redirect(303, `${this.#endpoint}?${queryOf(fields).toString()}`);
  }

  @Post('confirm')
  @Route({ body: { kind: 'fields' }, summary: 'Logs out' })
  confirmLogOut(@Req() request: Request, @Res() response: Response): Promise<void> {
    return request.headers.accept === 'application/json'
      ? this.oidcProvider.answer(request, response)
      : this.#answerWithPage(request, response);
  }

  @Get('success')
  @Route({ summary: 'Shows that the user is logged out' })
  loggedOut(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#answerWithPage(request, response);
  }

  /**
   * Passes a request to the OAuth library as one that prefers HTML, so that its errors are also
   * shown as pages.
   */
  #answerWithPage(request: Request, response: Response): Promise<void> {
    request.headers.accept = 'text/html';
    return this.oidcProvider.answer(request, response);
  }

  #render(ctx: KoaContextWithOIDC, view: 'end-session' | 'logged-out', page: object): void {
    ctx.type = 'html';
    ctx.body = this.views.render(view, page);
  }

  /**
   * Ends the session of this service in the browser, and the user's other sessions if the user
   * chose that. The OAuth library ends only its own session, which the next request would make
   * again from our session.
   */
  async #endSession(ctx: KoaContextWithOIDC): Promise<void> {
    const request = requestOf(ctx);
    if (ctx.oidc.params?.['logout']) {
      const fields = request.body as FormFields;
      const withOthers = fields?.['others'] === 'yes';
      for (const token of this.sessionCookies.everyToken(request)) {
        await this.sessions.logOut(token, originOf(request), withOthers);
      }
      this.sessionCookies.clear(responseOf(ctx));
    }
    // The script of the logout page gets the URL of the redirect as JSON, and opens the URL itself.
    // The Content-Security-Policy forbids that a form redirects to another site, such as that of a
    // client.
    if (ctx.accepts('html', 'json') === 'json') {
      const location = ctx.response.get('location');
      ctx.remove('location');
      ctx.status = 200;
      ctx.body = { location };
    }
  }
}
