import { Controller, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { AccessTokenJwts, isStructured } from '../engine/access-tokens.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** The endpoints that clients call with a form, and authenticate themselves at (RFC 6749 §3.2, RFC 9126, RFC 8628, RFC 7662, RFC 7009). */
@Controller('oauth')
@Public()
@BodyType('fields')
export class TokenController {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly jwts: AccessTokenJwts,
  ) {}

  @Post('par')
  push(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  @Post('token')
  @HttpCode(200)
  token(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  @Post('device')
  @HttpCode(200)
  device(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  @Post('introspect')
  @HttpCode(200)
  async introspect(@Req() request: Request, @Res() response: Response): Promise<void> {
    await this.#lookUpByHandle(request);
    await this.oidc.answer(request, response);
  }

  @Post('revoke')
  @HttpCode(200)
  async revoke(@Req() request: Request, @Res() response: Response): Promise<void> {
    await this.#lookUpByHandle(request);
    await this.oidc.answer(request, response);
  }

  /** OpenID Connect Core §5.3.1 */
  @Get('userinfo')
  @BodyType('none')
  userinfo(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  @Post('userinfo')
  @HttpCode(200)
  userinfoByPost(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  /** The library refuses tokens that are JWTs; under their handle it finds what was registered of them. */
  async #lookUpByHandle(request: Request): Promise<void> {
    const fields = request.body as Record<string, unknown> | undefined;
    const token = fields?.['token'];
    if (!fields || typeof token !== 'string' || !isStructured(token)) return;
    fields['token'] = (await this.jwts.handleOf(token)) ?? NO_TOKEN;
  }
}

/** Names no token: what is not ours is as good as unknown. */
const NO_TOKEN = 'none';
