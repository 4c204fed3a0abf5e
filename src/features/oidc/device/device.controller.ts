import { Body, Controller, Get, HttpCode, Post, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/access.js';
import { Route } from '#platform/http/routing/route.js';
import { Holders } from '../request/resource-owners.service.js';
import { DeviceApprovals } from './device-approvals.service.js';
import { DeviceRequests } from './device-requests.service.js';
import { DeviceSignIn } from './device-sign-in.service.js';
import {
  DEVICE_DECISION,
  DEVICE_FORM,
  DEVICE_QUERY,
  type DeviceDecision,
  type DeviceForm,
  type DeviceQuery,
} from './device.schemas.js';
import { formatUserCode } from '../protocol/user-code.js';

/** `/device`: where a person types the code that a device shows, and lets it act for them, or not (RFC 8628 §3.3). */
@Controller('device')
@Route({
  tier: 'general',
  audience: 'ui',
  errors: 'problem',
  auth: { session: 'none', origin: 'strict' },
})
export class DeviceController {
  constructor(
    private readonly holders: Holders,
    private readonly requests: DeviceRequests,
    private readonly approvals: DeviceApprovals,
    private readonly signIn: DeviceSignIn,
    private readonly cookies: SessionCookies,
    private readonly views: Views,
  ) {}

  /** Asks for the code. One that came with the address is shown to be compared, and never sent by itself (§3.3.1). */
  @Get()
  @Route({
    errors: 'html',
    auth: { session: 'optional', origin: 'strict' },
    summary: 'Asks for the code of a device',
  })
  ask(
    @Caller() session: LiveSession | undefined,
    @Query({ schema: DEVICE_QUERY }) query: DeviceQuery,
    @Req() request: Request,
    @Res() response: Response,
  ): void {
    this.#ask(query.user_code, { session, request, response });
  }

  /**
   * Shows who asks for what. A browser without a session goes upstream first, and one that is only signed in there to the login
   * with the key.
   */
  @Post()
  @Route({
    tier: 'authentication',
    body: { kind: 'form' },
    errors: 'html',
    auth: { session: 'optional', origin: 'strict' },
    summary: 'Shows the device that a code belongs to',
  })
  @HttpCode(200)
  async show(
    @Caller() session: LiveSession | undefined,
    @Body({ schema: DEVICE_FORM }) form: DeviceForm,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const holder = await this.holders.ofBrowser({ req: request });
    if (!holder) {
      const next = session
        ? this.signIn.loginPage(form)
        : await this.signIn.begin(form, request, response);
      response.redirect(303, next);
      return;
    }
    const page = await this.requests.page(holder, form.user_code);
    if (page) response.type('html').send(this.views.render('device-approval', page));
    else this.#ask(form.user_code, { session, request, response: response.status(404) }, true);
  }

  /** The person approves, with a touch of their key in the last minute. */
  @Post('approve')
  @Route({ summary: 'Approves a device' })
  @HttpCode(200)
  async approve(
    @Body({ schema: DEVICE_DECISION }) decision: DeviceDecision,
    @ClientOrigin() origin: AuditOrigin,
    @Req() request: Request,
  ) {
    const token = this.cookies.token(request);
    await this.approvals.approve(token, decision.user_code, origin);
    return { status: 'approved' };
  }

  /** The person does not. */
  @Post('deny')
  @Route({ summary: 'Denies a device' })
  @HttpCode(200)
  async deny(@Body({ schema: DEVICE_DECISION }) decision: DeviceDecision, @Req() request: Request) {
    await this.approvals.deny(this.cookies.token(request), decision.user_code);
    return { status: 'denied' };
  }

  #ask(typed: string | undefined, { session, request, response }: Visit, isWrong = false): void {
    const page = {
      userCode: formatUserCode(typed ?? ''),
      isWrong,
      choices: session ? [] : this.signIn.choices(),
      isReturning: this.cookies.hasUsedKey(request),
    };
    response.type('html').send(this.views.render('device', page));
  }
}

/** A browser at the form. */
interface Visit {
  readonly session: LiveSession | undefined;
  readonly request: Request;
  readonly response: Response;
}
