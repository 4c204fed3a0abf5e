import { Body, Controller, Get, Inject, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { ROUTES } from '../engine/configuration.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { queryOf, type FormFields } from '../request/form-fields.js';

/** `/oauth/logout`: the logout that an application asks for (OpenID Connect RP-Initiated Logout 1.0). */
@Controller('oauth/logout')
@Route({ tier: 'general', audience: 'navigation', errors: 'html', auth: PUBLIC })
export class LogoutController {
  readonly #endpoint: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidcProvider: OidcProvider,
  ) {
    this.#endpoint = `${config.http.baseUrl}${ROUTES.end_session}`;
  }

  @Get()
  @Route({ summary: 'Asks whether to log out (OpenID Connect RP-Initiated Logout)' })
  logOut(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#answerWithPage(request, response);
  }

  /** Redirects to the GET, since Lax cookies do not come with a POST of another site (§2). */
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

  /** Answers a browser: errors are pages as well. */
  #answerWithPage(request: Request, response: Response): Promise<void> {
    request.headers.accept = 'text/html';
    return this.oidcProvider.answer(request, response);
  }
}
