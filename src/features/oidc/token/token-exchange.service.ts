import { Injectable, type OnModuleInit } from '@nestjs/common';
import { errors, type ResourceServerInstance, type TokenEndpointGrantContext } from 'oidc-provider';
import { buildTokenResponse, resolveRequestedResources } from 'oidc-provider/lib/helpers/grants.js';
import { epochSeconds } from '../protocol/claims.js';
import { TOKEN_EXCHANGE_GRANT } from '../engine/configuration.js';
import { exchangeOf } from '../request/request-context.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { ACCESS_TOKEN, EXCHANGE_PARAMETERS, exchangeRequest } from './exchange-request.js';
import { narrowedScopes, targetOf } from './narrowing.js';
import { SubjectTokens, notGood } from './subject-tokens.service.js';
import { TokenIssuer } from './token-issuer.service.js';

/**
 * Token exchange (RFC 8693): a client that was handed a person's token gets one of its own for them, as wide and as long at
 * most. It hangs on a grant of the client's own, which ends with that of the person's token.
 */
@Injectable()
export class TokenExchange implements OnModuleInit {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly subjects: SubjectTokens,
    private readonly issuer: TokenIssuer,
  ) {}

  onModuleInit(): void {
    const exchange = (ctx: TokenEndpointGrantContext) => this.exchange(ctx);
    const several = ['audience', 'resource'];
    this.oidc.provider.registerGrantType(
      TOKEN_EXCHANGE_GRANT,
      exchange,
      EXCHANGE_PARAMETERS,
      several,
    );
  }

  /** Answers a token request. @throws InvalidRequest, InvalidTarget, InvalidScope, UnauthorizedClient and what a proof lacks */
  async exchange(ctx: TokenEndpointGrantContext): Promise<void> {
    const { client } = ctx.oidc;
    if (client.clientAuthMethod === 'none') {
      throw new errors.UnauthorizedClient('token exchange is for clients that authenticate');
    }
    const request = exchangeRequest(ctx.oidc.params);
    const possession = await this.issuer.possession(ctx);
    const subject = await this.subjects.find(ctx, request.subjectToken, possession);
    const server = await this.#serverOf(ctx, targetOf(request.targets, subject));
    const scopes = narrowedScopes(request.scopes, { subject, client, server });

    const longest = subject.expiresAt - epochSeconds(new Date());
    if (longest <= 0) throw notGood();
    const { holder, grantId, clientId } = subject;
    exchangeOf(ctx).subject = { grantId, clientId };
    const issue = { grantType: 'token_exchange', holder, possession, scopes, server, longest };
    const issued = await this.issuer.issue(ctx, issue);
    ctx.body = buildTokenResponse(this.oidc.provider, { ...issued, issuedTokenType: ACCESS_TOKEN });
  }

  async #serverOf(
    ctx: TokenEndpointGrantContext,
    resource: string | undefined,
  ): Promise<ResourceServerInstance | undefined> {
    if (resource === undefined) return undefined;
    ctx.oidc.params['resource'] = resource;
    const [server] = await resolveRequestedResources(this.oidc.provider, ctx);
    return server;
  }
}
