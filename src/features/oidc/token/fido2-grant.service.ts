import { Injectable, type OnModuleInit } from '@nestjs/common';
import { errors, type ResourceServerInstance, type TokenEndpointGrantContext } from 'oidc-provider';
import {
  buildTokenResponse,
  resolveRequestedResources,
  validateClientScope,
} from 'oidc-provider/lib/helpers/grants.js';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { accountClaims } from '../protocol/claims.js';
import { FIDO2_GRANT } from '../engine/configuration.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { boundScopes, grantedScopes, scopeWords } from '../protocol/scopes.js';
import { Fido2LogIn } from './fido2-log-in.service.js';
import { TokenIssuer, type IssuedToken, type Possession } from './token-issuer.service.js';

/** The parameters of the token request, each once. */
const PARAMETERS = ['assertion', 'state', 'scope', 'resource', 'nonce'];

/**
 * The FIDO2 grant: an assertion of a security key for a token, without a browser. It makes a session of its own, which a
 * browser's logout leaves, and de-provisioning or the removal of the key ends.
 */
@Injectable()
export class Fido2Grant implements OnModuleInit {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly logins: Fido2LogIn,
    private readonly issuer: TokenIssuer,
    private readonly metrics: ServiceMetrics,
  ) {}

  onModuleInit(): void {
    const redeem = (ctx: TokenEndpointGrantContext) => this.redeem(ctx);
    this.oidc.provider.registerGrantType(FIDO2_GRANT, redeem, PARAMETERS);
  }

  /** Answers a token request. @throws InvalidRequest, InvalidGrant, InvalidScope, InvalidTarget and what a proof lacks */
  async redeem(ctx: TokenEndpointGrantContext): Promise<void> {
    const { provider } = this.oidc;
    const { assertion, state } = ctx.oidc.params;
    if (typeof assertion !== 'string' || typeof state !== 'string') {
      throw new errors.InvalidRequest('missing required parameter(s) (assertion, state)');
    }
    const possession = await this.issuer.possession(ctx);
    validateClientScope(provider, ctx);
    const [server] = await resolveRequestedResources(provider, ctx);
    try {
      const holder = await this.logins.logIn(ctx, { assertion, state, jkt: possession.jkt });
      ctx.body = buildTokenResponse(provider, await this.#issue(ctx, holder, possession, server));
    } catch (error) {
      if (error instanceof errors.InvalidGrant) this.metrics.countAuthEvent('fido2_login_failure');
      throw error;
    }
    this.metrics.countAuthEvent('fido2_login_success');
  }

  async #issue(
    ctx: TokenEndpointGrantContext,
    holder: ResourceOwner,
    possession: Possession,
    server: ResourceServerInstance | undefined,
  ): Promise<IssuedToken & { readonly idToken: string | undefined }> {
    const { client, params } = ctx.oidc;
    const asked = scopeWords(params['scope']);
    const isDpopBound = possession.jkt !== undefined;
    const granted = boundScopes(grantedScopes(asked, client, holder), isDpopBound);
    const scopes = server ? asked.filter((scope) => server.scopes.has(scope)) : granted;
    const grantType = 'fido2';
    const issued = await this.issuer.issue(ctx, { grantType, holder, possession, scopes, server });
    const idToken = granted.includes('openid')
      ? await this.#idToken(ctx, holder, granted)
      : undefined;
    return { ...issued, idToken };
  }

  /** @param scopes whose claims it holds (OpenID Connect Core §5.4) */
  #idToken(
    ctx: TokenEndpointGrantContext,
    holder: ResourceOwner,
    scopes: readonly string[],
  ): Promise<string> {
    const token = new this.oidc.provider.IdToken({ ...accountClaims(holder) }, { ctx });
    token.set('nonce', ctx.oidc.params['nonce']);
    return Object.assign(token, { scope: scopes.join(' ') }).issue({ use: 'idtoken' });
  }
}
