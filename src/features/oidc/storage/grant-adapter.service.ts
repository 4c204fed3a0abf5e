import { Injectable, Logger } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { DEVICE_GRANT } from '#domain/oauth/applications/grant-types.js';
import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import { isAboutReach } from '#domain/access/issuance/refused-access.repository.js';
import { artifactId, type Artifact } from '#domain/oauth/grants/artifact.js';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import {
  destroyChildGrants,
  destroyGrant,
  endGrantSoon,
  endOwnSession,
} from '#domain/oauth/grants/grants.repository.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { sessionIdOfGrant } from '../protocol/grant-id.js';
import {
  errors,
  type Adapter,
  type AdapterPayload,
  type KoaContextWithOIDC,
} from '../protocol/library.js';
import { boundScopes, CLI_CLIENT_ID, deviceScopes, scopeWords } from '../protocol/scopes.js';
import {
  NotReached,
  refusedToken,
  TOO_MANY_GRANTS,
  type DeniedUser,
} from '../request/refused-reach.js';
import { requestContextOf, requestOf, type CurrentContext } from '../request/request-context.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { GONE, orIfGone, withoutId } from './stored-payload.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * Stores the grants of users to clients. Each grant belongs to a session and ends with the session.
 */
@Injectable()
export class GrantAdapter {
  readonly #log = new Logger('oidc');

  constructor(
    private readonly manager: EntityManager,
    private readonly batchedQueries: BatchedQueries,
    private readonly resourceOwners: ResourceOwners,
    private readonly sessions: Sessions,
  ) {}

  /** Returns the object by which the OAuth library reads and writes grants. */
  of(currentContext: CurrentContext): Pick<Adapter, 'upsert' | 'find' | 'destroy'> {
    return {
      upsert: (id, payload, expiresIn) => this.#write(currentContext, id, payload, expiresIn),
      find: (id) => this.#find(currentContext, id),
      destroy: (id) => this.#destroy(currentContext, id),
    };
  }

  /**
   * Ends a grant after a short time, because its code was redeemed twice (RFC 6749 §4.1.2). The
   * delay lets the client that redeemed the code first receive its response.
   */
  endSoon(grantId: string): Promise<void> {
    return withTransactionRetry(this.manager, (tx) => endGrantSoon(tx, artifactId(grantId)));
  }

  /**
   * Refuses a resource that an organization registered as a Kubernetes cluster, because only our
   * command-line client `svc-cli` gets tokens for clusters. A request without a resource
   * (undefined) is accepted.
   * @throws InvalidTarget for the resource of a cluster
   */
  assertFree(resource: string | undefined): Promise<void> {
    return this.resourceOwners.assertFree(resource);
  }

  /** Ends the grants whose tokens were made by exchanging a token of the given grant. */
  async destroyChildren(tx: EntityManager, grantId: string): Promise<void> {
    await destroyChildGrants(tx, artifactId(grantId));
  }

  /**
   * Moves a grant of our command-line client `svc-cli` from the browser's session to a new session
   * when its code is redeemed. A logout in the browser then does not end the grant.
   *
   * @throws InvalidGrant if the browser's session has already ended
   */
  async moveToOwnSession(ctx: KoaContextWithOIDC): Promise<void> {
    const context = requestContextOf(ctx);
    const { grant: { id, found } = {}, codeAuthTime } = context;
    const session =
      found &&
      (await this.sessions.openOfGrant(artifactId(id ?? ''), found.resourceOwner, {
        clientId: CLI_CLIENT_ID,
        authTime: codeAuthTime,
        from: originOf(requestOf(ctx)),
      }));
    if (!session) throw new errors.InvalidGrant('the session has ended');
    const resourceOwner = { ...found.resourceOwner, ...session };
    context.grant = { id: id ?? '', found: { ...found, resourceOwner } };
    context.openedSession = session.sessionId;
  }

  /**
   * Ends the session that a token request opened for `svc-cli`, if the request was then refused,
   * for example because it proved another DPoP key, or ended by a fault. Otherwise the user would
   * see a session that no program has. If the database cannot be reached, the session stays open
   * without any token.
   */
  async endFailedSession(ctx: KoaContextWithOIDC): Promise<void> {
    const { openedSession } = requestContextOf(ctx);
    if (openedSession === undefined || ctx.status < 400) return;
    try {
      await this.sessions.end(this.manager, openedSession);
    } catch (error) {
      this.#log.warn(`The session of a failed token request stays open: ${reasonOf(error)}`);
    }
  }

  /**
   * Returns the error for a token whose client or cluster does not admit the user. It also records
   * the refusal, and ends the grant that a token exchange wrote for the token.
   */
  async refuse(
    ctx: KoaContextWithOIDC,
    { grantId, userId }: Pick<Artifact, 'grantId' | 'userId'>,
    denied: Denied,
  ): Promise<Error> {
    const context = requestContextOf(ctx);
    const sessionId = context.resourceOwner?.sessionId ?? '';
    const error = await refusedToken(
      this.manager,
      ctx,
      { userId: userId ?? '', sessionId },
      denied,
    );
    if (context.subject && grantId) await destroyGrant(this.manager, grantId);
    return error;
  }

  async #write(
    currentContext: CurrentContext,
    id: string,
    payload: AdapterPayload,
    expiresIn = 0,
  ): Promise<void> {
    const ctx = currentContext();
    const grant = {
      id: artifactId(id),
      clientId: payload.clientId ?? '',
      userId: payload.accountId ?? '',
      sessionId: sessionIdOfGrant(id),
      payload: { ...withoutId(payload), svc_redirect_uri: ctx?.oidc.params?.['redirect_uri'] },
      expiresIn,
    };
    const subject = ctx && requestContextOf(ctx).subject;
    const asked = subject ? { ...grant, parentId: artifactId(subject.grantId) } : grant;
    const outcome = await orIfGone(this.batchedQueries.writeGrant(asked), GONE);
    if ('issued' in outcome) return;
    if (isAboutReach(outcome)) throw await this.#refusal(ctx, grant, outcome);
    const tooMany = outcome.denial === 'withheld' ? TOO_MANY_GRANTS : undefined;
    if (subject) throw new errors.InvalidRequest(tooMany ?? 'the subject token has ended');
    throw new errors.AccessDenied(tooMany ?? 'the session has ended');
  }

  /**
   * Returns the error for a user that the client does not admit. At the token endpoint the refusal
   * is also recorded in the audit log. At any other endpoint the error is {@link NotReached}, so
   * that the user sees a page.
   */
  async #refusal(
    ctx: KoaContextWithOIDC | undefined,
    user: DeniedUser,
    denied: Denied,
  ): Promise<Error> {
    const isToken = ctx?.oidc.route === 'token';
    return isToken ? refusedToken(this.manager, ctx, user, denied) : new NotReached(denied);
  }

  async #find(currentContext: CurrentContext, id: string): Promise<AdapterPayload | undefined> {
    const ctx = currentContext();
    const found = ctx
      ? await this.resourceOwners.findGrant(ctx, id)
      : await this.batchedQueries.findGrant(artifactId(id));
    return found && { ...grantableNow(found.payload, currentContext), jti: id };
  }

  /**
   * Ends a grant after its code was redeemed a second time, because the code may have been stolen.
   * Also ends the session that the client opened with the code.
   */
  async #end(id: Buffer): Promise<void> {
    await endOwnSession(this.manager, id);
    await destroyGrant(this.manager, id);
  }

  async #destroy(currentContext: CurrentContext, id: string): Promise<void> {
    const ctx = currentContext();
    const isReusedAtOnce = ctx !== undefined && requestContextOf(ctx).isReusedAtOnce === true;
    if (isReusedAtOnce) await this.endSoon(id);
    else await this.#end(artifactId(id));
    if (ctx) delete requestContextOf(ctx).grant;
  }
}

/**
 * Limits a grant's scopes for a request to the token endpoint. `svc:admin` and `svc:applications`
 * need a DPoP proof, which the OAuth library verifies. A device of `svc-cli` gets only the scopes
 * of devices, even if an earlier version of this service approved more.
 */
function grantableNow(payload: AdapterPayload, currentContext: CurrentContext): AdapterPayload {
  const ctx = currentContext();
  const openid = payload['openid'] as { readonly scope?: string } | undefined;
  if (ctx?.oidc.route !== 'token' || openid?.scope === undefined) return payload;
  const bound = boundScopes(scopeWords(openid.scope), ctx.get('DPoP') !== '');
  const isDevice = ctx.oidc.params?.['grant_type'] === DEVICE_GRANT;
  const scopes = isDevice && payload.clientId === CLI_CLIENT_ID ? deviceScopes(bound) : bound;
  return { ...payload, openid: { ...openid, scope: scopes.join(' ') } };
}
