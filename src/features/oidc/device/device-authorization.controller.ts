import { Controller, HttpCode, Inject, Post, Req, Res, type OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/**
 * `POST /oauth/device`: gives a device its own code, and the code that its user types into a
 * browser (RFC 8628 §3.1).
 */
@Controller('oauth/device')
@Route({
  tier: 'authentication',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class DeviceAuthorizationController implements OnModuleInit {
  readonly #pollInterval: number;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidcProvider: OidcProvider,
  ) {
    this.#pollInterval = config.oidc.deviceCode.pollIntervalSeconds;
  }

  /**
   * Adds to the OAuth library's response the seconds that the device must wait between two polls.
   */
  onModuleInit(): void {
    this.oidcProvider.after('device_authorization', (ctx) => {
      if (ctx.status === 200) Object.assign(ctx.body as object, { interval: this.#pollInterval });
    });
  }

  @Post()
  @Route({
    anonymousRows: true,
    operation: 'createDeviceCode',
    summary: 'Issues a device code (RFC 8628)',
    ...OAUTH_ROUTES.device,
  })
  @HttpCode(200)
  authorizeDevice(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
