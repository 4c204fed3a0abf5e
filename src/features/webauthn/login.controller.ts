import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { LoginCeremony } from './login-ceremony.service.js';
import { COMPLETE_LOGIN, START, type CompleteLogin, type Start } from './webauthn.schemas.js';

/**
 * Logs users in with a security key. The browser may have no session, or that of a sign-in at the
 * identity provider. In a session that a key has verified, the user touches the key again
 * (step-up).
 */
@Controller('login/webauthn')
@Route({
  tier: 'authentication',
  body: { max: 32 * KIB },
  audience: 'ui',
  errors: 'problem',
  auth: { session: 'optional', origin: 'ui' },
})
export class LoginController {
  constructor(
    private readonly ceremony: LoginCeremony,
    private readonly cookies: SessionCookies,
    private readonly metrics: ServiceMetrics,
  ) {}

  @Post('start')
  @Route({ summary: 'Begins a login with a security key' })
  @HttpCode(200)
  start(
    @Caller() session: LiveSession | undefined,
    @Body({ schema: START }) body: Start,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    const browser = session ? undefined : this.cookies.ensureBrowserSecret(request, response);
    return this.ceremony.start({ session, browser }, body);
  }

  @Post('complete')
  @Route({ failureStatus: 400, summary: 'Completes a login with a security key' })
  @HttpCode(200)
  async complete(
    @Caller() session: LiveSession | undefined,
    @Body({ schema: COMPLETE_LOGIN }) body: CompleteLogin,
    @ClientOrigin() origin: AuditOrigin,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    const requester = { session, browser: this.cookies.browserSecret(request) };
    const login = this.ceremony.complete(requester, body, origin);
    const { opened, redirectTo } = await this.metrics.countLogin(login);
    if (opened) this.cookies.set(response, opened);
    this.cookies.rememberKeyUse(response);
    return { redirect_to: redirectTo };
  }
}
