import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { OWN_SCOPES } from '../protocol/scopes.js';

/** What clients and resource servers read before anything else. */
@Controller()
@Route({ tier: 'unlimited', audience: 'api', errors: 'negotiated', auth: PUBLIC })
export class DiscoveryController {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidc: OidcProvider,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  /** OpenID Connect Discovery §4. */
  @Get('.well-known/openid-configuration')
  @Route({ summary: 'Metadata of the OpenID provider (OpenID Connect Discovery)' })
  openIdConfiguration(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  /** RFC 8414 §3. */
  @Get('.well-known/oauth-authorization-server')
  @Route({ summary: 'Metadata of the authorization server (RFC 8414)' })
  authorizationServer(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  /** RFC 9728 §2: our own APIs, and who gives the tokens that open them. */
  @Get('.well-known/oauth-protected-resource')
  @Route({ summary: 'Metadata of the protected resources (RFC 9728)' })
  protectedResource(): object {
    return {
      resource: this.#baseUrl,
      authorization_servers: [this.#baseUrl],
      scopes_supported: OWN_SCOPES,
      bearer_methods_supported: ['header'],
      dpop_signing_alg_values_supported: ['ES256', 'EdDSA', 'Ed25519', 'PS256'],
    };
  }

  /** The keys that verify what we sign (RFC 7517 §5). */
  @Get('oauth/jwks')
  @Route({ errors: 'oauth', summary: 'Public keys of the token signatures (RFC 7517)' })
  jwks(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }
}
