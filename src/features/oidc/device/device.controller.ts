import { Body, Controller, Get, HttpCode, Inject, Post, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { displayName } from '#domain/oauth/clients/display-name.js';
import { IdentityProviders } from '#domain/providers/identity-providers.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { formatUserCode } from '../protocol/user-code.js';
import { approvalPage } from './device-request.js';
import {
  DEVICE_DECISION,
  DEVICE_FORM,
  DEVICE_QUERY,
  type DeviceDecision,
  type DeviceForm,
  type DeviceQuery,
} from './device.schemas.js';
import { Devices } from './devices.service.js';
import { beginLogin, loginPage, providerChoices, type LoginServices } from './upstream-choice.js';

/** `/device`: a user types the code of a device, and approves or refuses it (RFC 8628 §3.3). */
@Controller('device')
@Route({
  tier: 'general',
  audience: 'ui',
  errors: 'problem',
  auth: { session: 'optional', origin: 'strict' },
})
export class DeviceController {
  readonly #loginServices: LoginServices;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly resourceOwners: ResourceOwners,
    private readonly devices: Devices,
    private readonly sessionCookies: SessionCookies,
    private readonly views: Views,
    identityProviders: IdentityProviders,
  ) {
    this.#loginServices = {
      baseUrl: config.http.baseUrl,
      isCertification: config.certification.token !== undefined,
      identityProviders,
      sessionCookies,
    };
  }

  /**
   * Shows the form for the code. A code in the query of the URL is filled in, and the user must
   * compare it with the device and submit it (RFC 8628 §3.3.1).
   */
  @Get()
  @Route({
    errors: 'html',
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
   * Shows the device and the access that it asks for. A browser whose user has not logged in with a
   * security key is redirected to the login first.
   */
  @Post()
  @Route({
    tier: 'authentication',
    anonymousRows: true,
    body: { kind: 'form' },
    errors: 'html',
    summary: 'Shows the device that a code belongs to',
  })
  @HttpCode(200)
  async show(
    @Caller() session: LiveSession | undefined,
    @Body({ schema: DEVICE_FORM }) form: DeviceForm,
    @ClientOrigin() origin: AuditOrigin,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const resourceOwner = await this.resourceOwners.ofBrowser({ req: request });
    if (!resourceOwner) {
      const next = session
        ? loginPage(form, this.#loginServices)
        : await beginLogin(form, request, response, this.#loginServices);
      response.redirect(303, next);
      return;
    }
    const device = await this.devices.find(resourceOwner, form.user_code);
    if (device && (await this.devices.refuseUnassigned(resourceOwner, device, origin))) {
      const user = { email: resourceOwner.email ?? '' };
      const page = { client: { name: displayName(device.client) }, user };
      response.status(403).type('html').send(this.views.render('refused', page));
    } else if (device) {
      const page = approvalPage(device, resourceOwner, form.user_code);
      response.type('html').send(this.views.render('device-approval', page));
    } else this.#ask(form.user_code, { session, request, response: response.status(404) }, true);
  }

  /** Approves the device. The user must have touched the security key within the last minute. */
  @Post('approve')
  @Route({ summary: 'Approves a device' })
  @HttpCode(200)
  async approve(
    @Body({ schema: DEVICE_DECISION }) decision: DeviceDecision,
    @ClientOrigin() origin: AuditOrigin,
    @Req() request: Request,
  ) {
    const token = this.sessionCookies.token(request);
    await this.devices.approve(token, decision.user_code, origin);
    return { status: 'approved' };
  }

  /** Refuses the device, so that it gets no token. */
  @Post('deny')
  @Route({ summary: 'Denies a device' })
  @HttpCode(200)
  async refuse(
    @Body({ schema: DEVICE_DECISION }) decision: DeviceDecision,
    @Req() request: Request,
  ) {
    await this.devices.refuse(this.sessionCookies.token(request), decision.user_code);
    return { status: 'denied' };
  }

  #ask(typed: string | undefined, { session, request, response }: Visit, isWrong = false): void {
    const page = {
      userCode: formatUserCode(typed ?? ''),
      isWrong,
      choices: session ? [] : providerChoices(this.#loginServices),
      isReturning: this.sessionCookies.hasUsedKey(request),
    };
    response.type('html').send(this.views.render('device', page));
  }
}

/** A request for the page `/device`, with the session of the browser if it has one. */
interface Visit {
  readonly session: LiveSession | undefined;
  readonly request: Request;
  readonly response: Response;
}
