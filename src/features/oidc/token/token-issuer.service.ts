import { X509Certificate, hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { ResourceServerInstance, TokenEndpointGrantContext } from 'oidc-provider';
import {
  checkDpopReplay,
  checkDpopRequired,
  checkMtlsCert,
  validateDpop,
} from 'oidc-provider/lib/helpers/grants.js';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { newGrant } from '../protocol/grant-id.js';
import { accessTokenLifetime } from '../engine/lifetimes.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';

/** What a request proves to hold, and its token is bound to: a key (RFC 9449 §5), a certificate (RFC 8705 §3), or neither. */
export interface Possession {
  readonly jkt: string | undefined;
  readonly x5t: string | undefined;
}

/** An access token of a person, as one of our own grants gives it. */
export interface Issue {
  /** The grant type, in short, for the audit log. */
  readonly grantType: string;
  /** Of the session that this request was found to be about. */
  readonly holder: ResourceOwner;
  readonly possession: Possession;
  readonly scopes: readonly string[];
  /** What the token is for; without one it is opaque, and good for userinfo. */
  readonly server: ResourceServerInstance | undefined;
  /** In seconds, where the token may not live as long as others do. */
  readonly longest?: number;
}

/** What the answer says of a token. */
export interface IssuedToken {
  readonly accessToken: string;
  readonly expiresIn: number;
  readonly tokenType: string;
  readonly scope: string | undefined;
}

/** What the grants that the library does not bring end in. */
@Injectable()
export class TokenIssuer {
  constructor(private readonly oidc: OidcProvider) {}

  /**
   * What a token request proves to hold. Its DPoP proof is spent.
   *
   * @throws InvalidDpopProof, UseDpopNonce; InvalidGrant where a proof comes again, or the client's tokens are bound and the
   *   request proves nothing
   */
  async possession(ctx: TokenEndpointGrantContext): Promise<Possession> {
    const { provider } = this.oidc;
    const dPoP = await validateDpop(provider, ctx);
    checkDpopRequired(provider, ctx, dPoP);
    const certificate = checkMtlsCert(provider, ctx);
    await checkDpopReplay(provider, ctx, dPoP, ctx.oidc.client.clientId);
    return {
      jkt: dPoP?.thumbprint,
      x5t: certificate === undefined ? undefined : thumbprintOf(certificate),
    };
  }

  /** Issues a token under a grant of its own. @throws InvalidGrant, AccessDenied when the session is gone */
  async issue(ctx: TokenEndpointGrantContext, issue: Issue): Promise<IssuedToken> {
    const { provider } = this.oidc;
    const { client } = ctx.oidc;
    const { clientId } = client;
    const { holder, possession, server, longest = Infinity } = issue;
    const scope = issue.scopes.join(' ');
    const grant = newGrant(provider, holder, clientId);
    if (server) grant.addResourceScope(server.identifier(), scope);
    else grant.addOIDCScope(scope);
    const token = new provider.AccessToken({
      client,
      accountId: holder.userId,
      grantId: await grant.save(),
      gty: issue.grantType,
      scope,
      resourceServer: server,
      jkt: possession.jkt,
      'x5t#S256': possession.x5t,
      expiresIn: Math.min(
        longest,
        accessTokenLifetime(ctx, { clientId, scope, resourceServer: server }),
      ),
    });
    ctx.oidc.entity('AccessToken', token);
    return {
      accessToken: await token.save(),
      expiresIn: token.expiration,
      tokenType: token.tokenType,
      scope: scope === '' ? undefined : scope,
    };
  }
}

function thumbprintOf(certificate: string | X509Certificate): string {
  const { raw } = typeof certificate === 'string' ? new X509Certificate(certificate) : certificate;
  return hash('sha256', raw, 'base64url');
}
