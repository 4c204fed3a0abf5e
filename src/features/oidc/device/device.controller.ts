import { Body, Controller, Get, HttpCode, Inject, Post, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Access } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { ClientOrigin } from '#platform/http/client-origin.js';
import { SessionCookies } from '#platform/http/session-cookies.service.js';
import { Views } from '#platform/http/views.service.js';
import { Holders } from '#oidc/sessions/holders.service.js';
import { DeviceApprovals } from './device-approvals.service.js';
import { DeviceRequests } from './device-requests.service.js';
import {
  DEVICE_DECISION,
  DEVICE_FORM,
  DEVICE_QUERY,
  type DeviceDecision,
  type DeviceForm,
  type DeviceQuery,
} from './device.schemas.js';
import { formatUserCode } from './user-code.js';

/** `/device`: where a person types the code that a device shows, and lets it act for them, or not (RFC 8628 §3.3). */
@Controller('device')
@Access({ session: 'none', origin: 'strict' })
export class DeviceController {
  readonly #isCertification: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly holders: Holders,
    private readonly requests: DeviceRequests,
    private readonly approvals: DeviceApprovals,
    private readonly cookies: SessionCookies,
    private readonly views: Views,
  ) {
    this.#isCertification = config.certification.token !== undefined;
  }

  /** Asks for the code. One that came with the address is shown to be compared, and never sent by itself (§3.3.1). */
  @Get()
  ask(@Query({ schema: DEVICE_QUERY }) query: DeviceQuery, @Res() response: Response): void {
    this.#ask(response, query.user_code, false);
  }

  /** Shows who asks for what; whoever is not logged in with a key does that first. */
  @Post()
  @HttpCode(200)
  @BodyType('form')
  async show(
    @Body({ schema: DEVICE_FORM }) form: DeviceForm,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const holder = await this.holders.ofBrowser({ req: request });
    if (!holder) {
      response.redirect(303, this.#loginPage(form));
      return;
    }
    const page = await this.requests.page(holder, form.user_code);
    if (page) response.type('html').send(this.views.render('device-approval', page));
    else this.#ask(response.status(404), form.user_code, true);
  }

  /** The person approves, with a touch of their key in the last minute. */
  @Post('approve')
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
  @HttpCode(200)
  async deny(@Body({ schema: DEVICE_DECISION }) decision: DeviceDecision, @Req() request: Request) {
    await this.approvals.deny(this.cookies.token(request), decision.user_code);
    return { status: 'denied' };
  }

  #ask(response: Response, typed: string | undefined, isWrong: boolean): void {
    const userCode = formatUserCode(typed ?? '');
    response.type('html').send(this.views.render('device', { userCode, isWrong }));
  }

  /** It leads back to the form, where the code stands. */
  #loginPage({ user_code: typed, provider }: DeviceForm): string {
    const userCode = formatUserCode(typed);
    const back = `/device?${new URLSearchParams({ user_code: userCode }).toString()}`;
    const query = new URLSearchParams({ redirect_to: back });
    if (provider !== undefined && provider !== '') query.set('provider', provider);
    if (this.#isCertification) query.set('user_code', userCode);
    return `/login?${query.toString()}`;
  }
}
