import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { artifactId } from '#domain/grants/artifact.js';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';
import { GrantsRepository } from '#domain/grants/grants.repository.js';
import type { LiveGrant } from '#domain/grants/live-grant.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { exchangeOf, requestOf } from './request-context.js';

/** Who a request is about: looked up live, once a request. */
@Injectable()
export class Holders {
  constructor(
    private readonly manager: EntityManager,
    private readonly statements: BatchedQueries,
    private readonly grants: GrantsRepository,
    private readonly cookies: SessionCookies,
  ) {}

  /** The person whose browser asks: logged in with a key, and not merely signed in upstream. */
  async ofBrowser(ctx: Pick<KoaContextWithOIDC, 'req'>): Promise<ResourceOwner | undefined> {
    const exchange = exchangeOf(ctx);
    if (exchange.holder === undefined) {
      const token = this.cookies.token(requestOf(ctx));
      const found = token
        ? await this.statements.findResourceOwnerOfBrowser(hashOpaqueToken(token))
        : undefined;
      exchange.holder = found ?? null;
    }
    return exchange.holder ?? undefined;
  }

  /** The person behind a grant, by the library's id of it. */
  async ofGrant(
    ctx: Pick<KoaContextWithOIDC, 'req'>,
    grantId: string,
  ): Promise<ResourceOwner | undefined> {
    const grant = await this.grant(ctx, grantId);
    const exchange = exchangeOf(ctx);
    exchange.holder = grant === undefined || grant.isOver ? null : grant.resourceOwner;
    return exchange.holder ?? undefined;
  }

  /** A grant and who is behind it, by the library's id of it: a request that asks for both asks once. */
  async grant(
    ctx: Pick<KoaContextWithOIDC, 'req'>,
    grantId: string,
  ): Promise<LiveGrant | undefined> {
    const exchange = exchangeOf(ctx);
    if (exchange.grant?.id !== grantId) {
      const found = await this.statements.findGrant(artifactId(grantId));
      exchange.grant = { id: grantId, found };
    }
    return exchange.grant.found;
  }

  /** The person whose session this is. */
  async ofSession(
    ctx: Pick<KoaContextWithOIDC, 'req'>,
    sessionId: string,
  ): Promise<ResourceOwner | undefined> {
    const exchange = exchangeOf(ctx);
    exchange.holder = (await this.grants.resourceOwnerOfSession(this.manager, sessionId)) ?? null;
    return exchange.holder ?? undefined;
  }
}
