import { Body, Controller, Delete, Get, Param, Post, Put, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { ClientAdapter } from '../storage/client-adapter.service.js';
import { dynamicMetadata } from '../protocol/clients/dynamic-metadata.js';

/** Clients that register themselves (RFC 7591), and what they may change of it afterwards (RFC 7592). */
@Controller('oauth/register')
@Route({ tier: 'authentication', audience: 'api', errors: 'oauth', auth: PUBLIC })
export class RegistrationController {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly clients: ClientAdapter,
  ) {}

  @Post()
  @Route({ failureStatus: 201, summary: 'Registers a client (RFC 7591)' })
  register(
    @Body() body: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    request.body = dynamicMetadata(body);
    return this.oidc.answer(request, response);
  }

  @Get(':clientId')
  @Route({ summary: 'Shows the registration of a client (RFC 7592)' })
  read(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  @Put(':clientId')
  @Route({ summary: 'Changes the registration of a client (RFC 7592)' })
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
  @Route({ summary: 'Removes the registration of a client (RFC 7592)' })
  remove(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }
}
