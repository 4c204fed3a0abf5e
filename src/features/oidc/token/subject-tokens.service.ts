import { Injectable } from '@nestjs/common';
import { errors, type AccessToken, type TokenEndpointGrantContext } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { AccessTokenJwts, isStructured } from '../engine/access-tokens.service.js';
import { asksForConsent } from '../storage/grant-loader.service.js';
import { Holders } from '../request/resource-owners.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { isOwnScope, scopeWords } from '../protocol/scopes.js';
import { TokenPolicies } from '../engine/token-policies.service.js';
import type { Possession } from './token-issuer.service.js';

/** A token that may be exchanged: whose it is, and how far it reaches. */
export interface Subject {
  readonly holder: ResourceOwner;
  /** The grant it hangs on, by the library's id of it: what is exchanged for it ends with that. */
  readonly grantId: string;
  readonly clientId: string;
  /** Seconds of the epoch. */
  readonly expiresAt: number;
  /** The resource server it is for; an opaque one is for none. */
  readonly audience: string | undefined;
  /** Without those of our own APIs, which no other client is given. */
  readonly scopes: readonly string[];
  /** The scopes that its grant gave at a resource server; none for one that was not named in it. */
  readonly grantedAt: (resource: string) => readonly string[];
}

/** The tokens that clients bring to exchange (RFC 8693 §2.1). */
@Injectable()
export class SubjectTokens {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly holders: Holders,
    private readonly jwts: AccessTokenJwts,
    private readonly policies: TokenPolicies,
  ) {}

  /**
   * Finds what a client brings: an access token of ours, alive, of a person, issued to this client or to another application of
   * the same people. The request is about that person from here on.
   *
   * @throws InvalidRequest, the same for every token that will not do (RFC 8693 §2.2.2)
   */
  async find(
    ctx: TokenEndpointGrantContext,
    value: string,
    possession: Possession,
  ): Promise<Subject> {
    const token = await this.#find(value);
    const grant = await this.oidc.provider.Grant.find(token?.grantId ?? '');
    if (!token?.isValid || !grant || !isHeld(token, possession)) throw notGood();
    const holder = await this.holders.ofGrant(ctx, token.grantId);
    if (holder?.userId !== token.accountId || !(await this.#mayHave(ctx, token, holder))) {
      throw notGood();
    }
    return {
      holder,
      grantId: token.grantId,
      clientId: token.clientId ?? '',
      expiresAt: token.exp ?? 0,
      audience: token.aud === undefined ? undefined : String(token.aud),
      scopes: scopeWords(token.scope).filter((scope) => !isOwnScope(scope)),
      grantedAt: (resource) => scopeWords(grant.getResourceScope(resource)),
    };
  }

  async #find(value: string): Promise<AccessToken | undefined> {
    const id = isStructured(value) ? await this.jwts.handleOf(value) : value;
    return id === undefined ? undefined : this.oidc.provider.AccessToken.find(id);
  }

  /** A person whose consent another client would need cannot be asked here. */
  async #mayHave(
    { oidc: { client } }: TokenEndpointGrantContext,
    token: AccessToken,
    holder: ResourceOwner,
  ): Promise<boolean> {
    if (token.clientId === client.clientId) return true;
    return !asksForConsent(client, holder) && this.policies.mayIntrospect(client, token);
  }
}

/** Whether a request holds what a token is bound to: a bound one is no use to whoever was merely handed it. */
function isHeld(token: AccessToken, { jkt, x5t }: Possession): boolean {
  const { jkt: key, 'x5t#S256': certificate } = token;
  return (key === undefined || key === jkt) && (certificate === undefined || certificate === x5t);
}

/** The one answer to a token that will not do. */
export function notGood(): errors.InvalidRequest {
  return new errors.InvalidRequest('the subject token is invalid, or not one for this client');
}
