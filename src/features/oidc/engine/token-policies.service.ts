import { Injectable } from '@nestjs/common';
import type { Client, Provider } from 'oidc-provider';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';

type Token =
  | InstanceType<Provider['AccessToken']>
  | InstanceType<Provider['ClientCredentials']>
  | InstanceType<Provider['RefreshToken']>;

/** Who may ask about a token that is not their own. */
@Injectable()
export class TokenPolicies {
  constructor(private readonly statements: BatchedQueries) {}

  /**
   * Whether a client may introspect a token (RFC 7662 §4): one of its own, or, for an application that authenticates itself,
   * one of an application of the same people. A client that registered itself learns of no token but its own.
   */
  async mayIntrospect(client: Client & OwnMetadata, token: Token): Promise<boolean> {
    if (token.clientId === client.clientId) return true;
    if (client.svc_kind !== 'application' || client.clientAuthMethod === 'none') return false;
    const other = await this.statements.findClient(token.clientId ?? '');
    if (!other) return false;
    return client.svc_org === undefined
      ? other.ownerId === (client.svc_owner ?? null)
      : other.orgId === client.svc_org;
  }
}
