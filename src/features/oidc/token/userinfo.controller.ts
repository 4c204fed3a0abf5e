import { Controller, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** `/oauth/userinfo`: the claims of the user of an access token (OpenID Connect Core §5.3). */
@Controller('oauth/userinfo')
@Public()
@BodyType('fields')
export class UserinfoController {
  constructor(private readonly oidcProvider: OidcProvider) {}

  @Get()
  @BodyType('none')
  userinfo(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }

  @Post()
  @HttpCode(200)
  userinfoByPost(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
