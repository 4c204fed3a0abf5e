import {
  Body,
  Controller,
  Delete,
  Get,
  Param,
  Post,
  Put,
  Req,
  Res,
  type OnModuleInit,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { OWN_METADATA } from '../protocol/client-metadata.js';
import { dynamicMetadata } from '../protocol/clients/dynamic-metadata.js';
import type { KoaContextWithOIDC } from '../protocol/library.js';
import { ClientAdapter } from '../storage/client-adapter.service.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/** `/oauth/register`: lets clients register and manage themselves (RFC 7591, RFC 7592). */
@Controller('oauth/register')
@Route({ tier: 'authentication', audience: 'api', errors: 'oauth', auth: PUBLIC })
export class RegistrationController implements OnModuleInit {
  constructor(
    private readonly oidcProvider: OidcProvider,
    private readonly clientAdapter: ClientAdapter,
  ) {}

  onModuleInit(): void {
    for (const route of ['client', 'client_update']) {
      this.oidcProvider.after(route, withholdSecrets);
    }
  }

  @Post()
  @Route({
    anonymousRows: true,
    operation: 'registerClient',
    summary: 'Registers a client (RFC 7591)',
    ...OAUTH_ROUTES.register,
  })
  register(
    @Body() body: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    request.body = dynamicMetadata(body);
    return this.oidcProvider.answer(request, response);
  }

  @Get(':clientId')
  @Route({
    operation: 'getClient',
    summary: 'Shows the registration of a client (RFC 7592)',
    ...OAUTH_ROUTES.readClient,
  })
  read(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }

  @Put(':clientId')
  @Route({
    operation: 'replaceClient',
    summary: 'Changes the registration of a client (RFC 7592)',
    ...OAUTH_ROUTES.updateClient,
  })
  async update(
    @Param('clientId') clientId: string,
    @Body() body: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    request.body = await this.clientAdapter.withSecretHashes(clientId, dynamicMetadata(body));
    await this.oidcProvider.answer(request, response);
  }

  @Delete(':clientId')
  @Route({
    operation: 'removeClient',
    summary: 'Removes the registration of a client (RFC 7592)',
    ...OAUTH_ROUTES.removeClient,
  })
  remove(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}

/**
 * Removes from a response the metadata that only this service defines, and the hashes that stand in
 * the place of a client's secret. A new secret stays in the response, because no later response
 * shows it.
 */
function withholdSecrets(ctx: KoaContextWithOIDC): void {
  if (ctx.status !== 200) return;
  const body = ctx.body as Record<string, unknown>;
  if (body['client_secret'] === ctx.oidc.client?.clientSecret) delete body['client_secret'];
  for (const name of OWN_METADATA) delete body[name];
}
