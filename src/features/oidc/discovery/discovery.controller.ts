import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Public } from '#platform/http/access/access.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { OWN_SCOPES } from '../protocol/scopes.js';

/** What clients and resource servers read before anything else. */
@Controller()
@Public()
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
  openIdConfiguration(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  /** RFC 8414 §3. */
  @Get('.well-known/oauth-authorization-server')
  authorizationServer(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  /** RFC 9728 §2: our own APIs, and who gives the tokens that open them. */
  @Get('.well-known/oauth-protected-resource')
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
  jwks(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }
}
