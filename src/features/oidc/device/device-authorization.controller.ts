import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** `POST /oauth/device`: gives a device its code and the code that its user types (RFC 8628 §3.1). */
@Controller('oauth/device')
@Route({
  tier: 'authentication',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class DeviceAuthorizationController {
  constructor(private readonly oidcProvider: OidcProvider) {}

  @Post()
  @Route({ summary: 'Issues a device code (RFC 8628)' })
  @HttpCode(200)
  authorizeDevice(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
