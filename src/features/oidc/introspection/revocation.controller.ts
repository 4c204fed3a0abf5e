import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { AccessTokenJwts } from '../engine/access-tokens.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** `POST /oauth/revoke`: ends a token that its client no longer needs (RFC 7009). */
@Controller('oauth/revoke')
@Public()
@BodyType('fields')
export class RevocationController {
  constructor(
    private readonly oidcProvider: OidcProvider,
    private readonly accessTokens: AccessTokenJwts,
  ) {}

  @Post()
  @HttpCode(200)
  async revoke(@Req() request: Request, @Res() response: Response): Promise<void> {
    await this.accessTokens.replaceJwt(request.body);
    await this.oidcProvider.answer(request, response);
  }
}
