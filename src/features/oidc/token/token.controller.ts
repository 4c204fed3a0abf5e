import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** `POST /oauth/token`: the token endpoint (RFC 6749 §3.2). */
@Controller('oauth/token')
@Public()
@BodyType('fields')
export class TokenController {
  constructor(private readonly oidcProvider: OidcProvider) {}

  @Post()
  @HttpCode(200)
  token(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
