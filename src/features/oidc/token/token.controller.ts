import { Controller, HttpCode, Post, Req, Res, type OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { AccessTokens } from '../engine/access-tokens.service.js';
import { FIDO2_GRANT, TOKEN_EXCHANGE_GRANT } from '#domain/oauth/applications/grant-types.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import type { KoaContextWithOIDC, TokenEndpointGrantContext } from '../protocol/library.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { Adapters } from '../storage/adapters.service.js';
import { EXCHANGE_PARAMETERS } from './exchange-request.js';
import { Fido2Grant } from './fido2-grant.service.js';
import { exchangeToken } from './token-exchange.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/**
 * The parameters of the FIDO2 grant, by which a client without a browser presents an assertion of a
 * security key.
 */
const FIDO2_PARAMETERS = ['assertion', 'state', 'scope', 'resource', 'nonce'];

/** The parameters of a token exchange that may come several times. */
const REPEATABLE = ['audience', 'resource'];

/** `POST /oauth/token`: the token endpoint (RFC 6749 §3.2). */
@Controller('oauth/token')
@Route({
  tier: 'authentication',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class TokenController implements OnModuleInit {
  constructor(
    private readonly oidcProvider: OidcProvider,
    private readonly fido2Grant: Fido2Grant,
    private readonly resourceOwners: ResourceOwners,
    private readonly accessTokens: AccessTokens,
    private readonly serviceMetrics: ServiceMetrics,
    private readonly adapters: Adapters,
  ) {}

  /**
   * Registers the two grant types that the OAuth library does not have: the FIDO2 grant and token
   * exchange. Also counts the tokens that the endpoint issues.
   */
  onModuleInit(): void {
    const { oidcProvider, resourceOwners, accessTokens } = this;
    const { provider } = oidcProvider;
    const redeem = (ctx: TokenEndpointGrantContext) => this.fido2Grant.redeem(ctx);
    provider.registerGrantType(FIDO2_GRANT, redeem, FIDO2_PARAMETERS);
    const exchange = (ctx: TokenEndpointGrantContext) =>
      exchangeToken(ctx, { resourceOwners, accessTokens });
    provider.registerGrantType(TOKEN_EXCHANGE_GRANT, exchange, EXCHANGE_PARAMETERS, REPEATABLE);
    oidcProvider.after('token', (ctx) => this.adapters.undoFailed(ctx));
    provider.on('grant.success', (ctx: KoaContextWithOIDC) => this.#count(ctx));
  }

  @Post()
  @Route({
    operation: 'issueToken',
    summary: 'Issues tokens (RFC 6749 §3.2)',
    ...OAUTH_ROUTES.token,
  })
  @HttpCode(200)
  token(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }

  #count(ctx: KoaContextWithOIDC): void {
    const body = ctx.body as { readonly id_token?: string };
    if (body.id_token !== undefined) this.serviceMetrics.countIssued('oidc');
    if (ctx.oidc.params?.['grant_type'] === 'authorization_code') {
      this.serviceMetrics.countAuthEvent('authorization_code_success');
    }
  }
}
