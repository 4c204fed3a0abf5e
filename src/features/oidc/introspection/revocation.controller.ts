import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { AccessTokens } from '../engine/access-tokens.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/** `POST /oauth/revoke`: ends a token that its client no longer needs (RFC 7009). */
@Controller('oauth/revoke')
@Route({
  tier: 'general',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class RevocationController {
  constructor(
    private readonly oidcProvider: OidcProvider,
    private readonly accessTokens: AccessTokens,
  ) {}

  @Post()
  @Route({
    operation: 'revokeToken',
    summary: 'Revokes a token (RFC 7009)',
    ...OAUTH_ROUTES.revoke,
  })
  @HttpCode(200)
  async revoke(@Req() request: Request, @Res() response: Response): Promise<void> {
    await this.accessTokens.replaceJwt(request.body);
    await this.oidcProvider.answer(request, response);
  }
}
