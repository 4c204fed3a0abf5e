import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** `POST /oauth/device`: gives a device its code and the code that its user types (RFC 8628 §3.1). */
@Controller('oauth/device')
@Public()
@BodyType('fields')
export class DeviceAuthorizationController {
  constructor(private readonly oidcProvider: OidcProvider) {}

  @Post()
  @HttpCode(200)
  authorizeDevice(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
