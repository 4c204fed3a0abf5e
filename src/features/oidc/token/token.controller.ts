import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** `POST /oauth/token`: the token endpoint (RFC 6749 §3.2). */
@Controller('oauth/token')
@Route({
  tier: 'authentication',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class TokenController {
  constructor(private readonly oidcProvider: OidcProvider) {}

  @Post()
  @Route({ summary: 'Issues tokens (RFC 6749 §3.2)' })
  @HttpCode(200)
  token(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
