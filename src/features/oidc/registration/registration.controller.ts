import { Body, Controller, Delete, Get, Param, Post, Put, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '#platform/http/access/access.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { ClientAdapter } from '../storage/client-adapter.service.js';
import { dynamicMetadata } from '../protocol/clients/dynamic-metadata.js';

/** Clients that register themselves (RFC 7591), and what they may change of it afterwards (RFC 7592). */
@Controller('oauth/register')
@Public()
export class RegistrationController {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly clients: ClientAdapter,
  ) {}

  @Post()
  register(
    @Body() body: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    request.body = dynamicMetadata(body);
    return this.oidc.answer(request, response);
  }

  @Get(':clientId')
  read(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  @Put(':clientId')
  async update(
    @Param('clientId') clientId: string,
    @Body() body: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    request.body = await this.clients.withSecretHashes(clientId, dynamicMetadata(body));
    await this.oidc.answer(request, response);
  }

  @Delete(':clientId')
  remove(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }
}
