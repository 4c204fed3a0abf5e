import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { AccessTokens } from '../engine/access-tokens.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/** `POST /oauth/introspect`: describes a token to a client (RFC 7662). */
@Controller('oauth/introspect')
@Route({
  tier: 'general',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class IntrospectionController {
  constructor(
    private readonly oidcProvider: OidcProvider,
    private readonly accessTokens: AccessTokens,
  ) {}

  @Post()
  @Route({
    operation: 'introspectToken',
    summary: 'Introspects a token (RFC 7662)',
    ...OAUTH_ROUTES.introspect,
  })
  @HttpCode(200)
  async introspect(@Req() request: Request, @Res() response: Response): Promise<void> {
    await this.accessTokens.replaceJwt(request.body);
    await this.oidcProvider.answer(request, response);
  }
}
