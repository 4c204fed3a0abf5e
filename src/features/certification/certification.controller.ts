import { Body, Controller, HttpCode, Inject, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { PendingLogins, type PendingLogin } from '#domain/oauth/grants/pending-logins.js';
import { KeyAuthentication } from '#domain/sign-in/key-authentication/key-authentication.service.js';
import { equalInConstantTime } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { bearerSecret } from '#platform/http/access/presented-token.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import {
  CERTIFICATION_FORM,
  CERTIFICATION_TOKEN,
  type CertificationForm,
} from './certification.schemas.js';

/**
 * `POST /certification/complete-login` and `/certification/deny-login`, which replace a login in
 * certification test mode. The caller must present the test token.
 */
@Controller('certification')
@Route({
  tier: 'general',
  body: { kind: 'form' },
  audience: 'api',
  errors: 'problem',
  auth: PUBLIC,
})
export class CertificationController {
  constructor(
    @Inject(CERTIFICATION_TOKEN) private readonly token: string,
    private readonly pending: PendingLogins,
    private readonly keyAuthentication: KeyAuthentication,
    private readonly cookies: SessionCookies,
    private readonly views: Views,
  ) {}

  /**
   * Completes the login of a waiting authorization request, or approves a device, for the synthetic
   * user of the tests.
   */
  @Post('complete-login')
  @Route({
    summary: 'Ends the login of an authorization or a device, without a key (certification only)',
  })
  @HttpCode(200)
  async completeLogin(
    @Req() request: Request,
    @Body({ schema: CERTIFICATION_FORM }) form: CertificationForm,
    @ClientOrigin() origin: AuditOrigin,
    @Res() response: Response,
  ): Promise<void> {
    const pending = this.#admit(request, form);
    const session = await this.keyAuthentication.logInSynthetic(origin);
    const next = await this.pending.complete(pending, session, origin);
    this.cookies.set(response, session);
    this.#continue(request, response, next);
  }

  /** Refuses the login of a waiting authorization request, or of a device. */
  @Post('deny-login')
  @Route({ summary: 'Denies the login of an authorization or a device (certification only)' })
  @HttpCode(200)
  async denyLogin(
    @Req() request: Request,
    @Body({ schema: CERTIFICATION_FORM }) form: CertificationForm,
    @Res() response: Response,
  ): Promise<void> {
    const pending = this.#admit(request, form);
    this.#continue(request, response, await this.pending.deny(pending));
  }

  /**
   * Checks the test token.
   *
   * @returns the login that the form names
   * @throws DomainError unauthenticated if neither the Authorization header nor the form has the
   *   token; invalid_request if the form names no login
   */
  #admit(request: Request, form: CertificationForm): PendingLogin {
    const presented = bearerSecret(request) ?? form?.token;
    if (presented === undefined || !equalInConstantTime(presented, this.token)) {
      throw new DomainError('unauthenticated', 'Present the certification test token.');
    }
    if (form?.interaction !== undefined) return { interaction: form.interaction };
    if (form?.user_code !== undefined) return { userCode: form.user_code };
    throw new DomainError('invalid_request', 'No authorization is waiting for a login.');
  }

  /**
   * Sends the next URL to a program, which follows it. A browser gets a page with a link, because
   * the Content-Security-Policy forbids that the answer to a form redirects to a client.
   */
  #continue(request: Request, response: Response, next: string): void {
    if (request.accepts(['html', 'json']) === 'html') {
      response.type('html').send(this.views.render('onward', { next }));
    } else response.json({ redirect_to: next });
  }
}
