import { Controller, Get, Inject, Req, Res, type OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import { TokenSigningKeys } from '#domain/oauth/token-signing/token-signing-keys.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { OWN_SCOPES } from '../protocol/scopes.js';
import { issuerMetadata, publishedIssuerOf } from './issuer-host.js';
import { correctDiscovery, type ServerMetadata } from './server-metadata.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/**
 * Serves the metadata and the public keys of this server at `/.well-known/*` and `/oauth/jwks`. At
 * an organization's own host, they are those of the organization's issuer.
 */
@Controller()
@Route({ tier: 'unlimited', audience: 'api', errors: 'negotiated', auth: PUBLIC })
export class DiscoveryController implements OnModuleInit {
  readonly #http: Config['http'];

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidcProvider: OidcProvider,
    private readonly tokenSigningKeys: TokenSigningKeys,
  ) {
    this.#http = config.http;
  }

  onModuleInit(): void {
    this.oidcProvider.after('discovery', (ctx) =>
      correctDiscovery(ctx.body as ServerMetadata, this.#http),
    );
    // The published keys include retired ones, which sign nothing more and only verify earlier
    // signatures.
    this.oidcProvider.after('jwks', (ctx) => {
      ctx.body = this.tokenSigningKeys.publicJwks();
    });
  }

  /** Returns the metadata of OpenID Connect Discovery (§4). */
  @Get('.well-known/openid-configuration')
  @Route({
    tenantHosts: true,
    operation: 'getOpenIdConfiguration',
    summary: 'Metadata of the OpenID provider, or of the issuer of an organization at its host',
    ...OAUTH_ROUTES.metadata,
  })
  async openIdConfiguration(@Req() request: Request, @Res() response: Response): Promise<void> {
    const issuer = publishedIssuerOf(request);
    if (issuer) response.json(issuerMetadata(issuer));
    else await this.oidcProvider.answer(request, response);
  }

  /** Returns the metadata of RFC 8414 (§3). */
  @Get('.well-known/oauth-authorization-server')
  @Route({
    operation: 'getAuthorizationServerMetadata',
    summary: 'Metadata of the authorization server (RFC 8414)',
    ...OAUTH_ROUTES.metadata,
  })
  authorizationServer(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }

  /** Returns the metadata of our own APIs as a protected resource (RFC 9728 §2). */
  @Get('.well-known/oauth-protected-resource')
  @Route({
    resourceMetadata: true,
    operation: 'getProtectedResourceMetadata',
    summary: 'Metadata of the protected resources (RFC 9728)',
    ...OAUTH_ROUTES.resourceMetadata,
  })
  protectedResource(): object {
    return {
      resource: this.#http.baseUrl,
      authorization_servers: [this.#http.baseUrl],
      scopes_supported: OWN_SCOPES,
      bearer_methods_supported: ['header'],
      dpop_signing_alg_values_supported: ['ES256', 'EdDSA', 'Ed25519', 'PS256'],
    };
  }

  /** Returns the public keys that verify our signatures (RFC 7517 §5). */
  @Get('oauth/jwks')
  @Route({
    errors: 'oauth',
    tenantHosts: true,
    operation: 'getPublicKeys',
    summary: 'Public keys of the token signatures, or of the issuer of an organization at its host',
    ...OAUTH_ROUTES.jwks,
  })
  async jwks(@Req() request: Request, @Res() response: Response): Promise<void> {
    const issuer = publishedIssuerOf(request);
    if (issuer) response.json({ keys: issuer.keys });
    else await this.oidcProvider.answer(request, response);
  }
}
