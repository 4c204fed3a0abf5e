import { Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { artifactId } from '#domain/grants/artifact.js';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';
import { GrantsRepository } from '#domain/grants/grants.repository.js';
import { sessionIdOfGrant } from '../protocol/grant-id.js';
import { errors, type Adapter, type AdapterPayload } from '../protocol/library.js';
import { boundScopes, scopeWords } from '../protocol/scopes.js';
import { requestContextOf, type CurrentContext } from '../request/request-context.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { falseIfGone, withoutId } from './stored-payload.js';

/** Stores the grants of users to clients; each grant belongs to a session and ends with it. */
@Injectable()
export class GrantAdapter {
  constructor(
    private readonly manager: EntityManager,
    private readonly batchedQueries: BatchedQueries,
    private readonly grantsRepository: GrantsRepository,
    private readonly resourceOwners: ResourceOwners,
  ) {}

  /** Returns the adapter of the library's model `Grant`. */
  of(currentContext: CurrentContext): Pick<Adapter, 'upsert' | 'find' | 'destroy'> {
    return {
      upsert: (id, payload, expiresIn) => this.#write(currentContext, id, payload, expiresIn),
      find: (id) => this.#find(currentContext, id),
      destroy: (id) => this.#destroy(currentContext, id),
    };
  }

  /** Ends a grant whose code was redeemed twice, soon after the first response (RFC 6749 §4.1.2). */
  endSoon(grantId: string): Promise<void> {
    return this.manager.transaction((tx) => this.grantsRepository.endSoon(tx, artifactId(grantId)));
  }

  /** Ends the grants of token exchanges that depend on a grant. */
  async destroyChildren(tx: EntityManager, grantId: string): Promise<void> {
    await this.grantsRepository.destroyChildren(tx, artifactId(grantId));
  }

  async #write(
    currentContext: CurrentContext,
    id: string,
    payload: AdapterPayload,
    expiresIn = 0,
  ): Promise<void> {
    const grant = {
      id: artifactId(id),
      clientId: payload.clientId ?? '',
      userId: payload.accountId ?? '',
      sessionId: sessionIdOfGrant(id),
      payload: withoutId(payload),
      expiresIn,
    };
    const ctx = currentContext();
    const subject = ctx && requestContextOf(ctx).subject;
    if (subject) {
      const child = { ...grant, parentId: artifactId(subject.grantId) };
      const isWritten = await falseIfGone(this.batchedQueries.writeGrant(child));
      if (!isWritten) throw new errors.InvalidRequest('the subject token has ended');
      return;
    }
    const isWritten = await falseIfGone(this.batchedQueries.writeGrant(grant));
    if (!isWritten) throw new errors.AccessDenied('the session has ended');
  }

  async #find(currentContext: CurrentContext, id: string): Promise<AdapterPayload | undefined> {
    const ctx = currentContext();
    const found = ctx
      ? await this.resourceOwners.findGrant(ctx, id)
      : await this.batchedQueries.findGrant(artifactId(id));
    return found && { ...grantableNow(found.payload, currentContext), jti: id };
  }

  async #destroy(currentContext: CurrentContext, id: string): Promise<void> {
    const ctx = currentContext();
    const isReusedAtOnce = ctx !== undefined && requestContextOf(ctx).isReusedAtOnce === true;
    if (isReusedAtOnce) await this.endSoon(id);
    else await this.grantsRepository.destroy(this.manager, artifactId(id));
    if (ctx) delete requestContextOf(ctx).grant;
  }
}

/**
 * Limits the scopes of a grant for this request: at the token endpoint `svc:admin` and `svc:applications` need a DPoP
 * proof. The library verifies
 * the proof and rejects the request if the proof is invalid.
 */
function grantableNow(payload: AdapterPayload, currentContext: CurrentContext): AdapterPayload {
  const ctx = currentContext();
  const openid = payload['openid'] as { readonly scope?: string } | undefined;
  if (ctx?.oidc.route !== 'token' || openid?.scope === undefined) return payload;
  const scopes = boundScopes(scopeWords(openid.scope), ctx.get('DPoP') !== '');
  return { ...payload, openid: { ...openid, scope: scopes.join(' ') } };
}
