import { Inject, Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Outcome } from '#domain/access/issuance/issuance.repository.js';
import { isAboutReach } from '#domain/access/issuance/refused-access.repository.js';
import { artifactId, type Artifact, type StoredArtifact } from '#domain/oauth/grants/artifact.js';
import {
  destroyArtifact,
  destroyArtifactsOfGrant,
  findArtifacts,
  keepArtifact,
  releaseArtifact,
  removeExpiredArtifacts,
  revokeArtifact,
  type ArtifactKey,
} from '#domain/oauth/grants/artifacts.repository.js';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import { pollDeviceCode } from '#domain/oauth/grants/device-codes.repository.js';
import type { TokenAudit } from '#domain/oauth/grants/tokens.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { noteRow } from '#platform/http/access/anonymous-row.js';
import { originOf } from '#platform/http/request/client-origin.js';
import {
  errors,
  type Adapter,
  type AdapterPayload,
  type KoaContextWithOIDC,
} from '../protocol/library.js';
import { boundScopes, CLI_CLIENT_ID, scopeWords } from '../protocol/scopes.js';
import {
  lookAhead,
  requestContextOf,
  requestOf,
  takeAhead,
  type CurrentContext,
  type HasRequest,
} from '../request/request-context.js';
import { GrantAdapter } from './grant-adapter.service.js';
import { artifactOf, GONE, orIfGone } from './stored-payload.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The seconds after the first use of a code in which the client may still wait for the response to
 * that use. If the code is used again in this time, its grant ends a little later, and not at once.
 */
const AT_ONCE = 0.5;

/** The OAuth library's model of a pushed authorization request (RFC 9126). */
const PUSHED = 'PushedAuthorizationRequest';

type FoundArtifact = ReturnType<BatchedQueries['findArtifact']>;

/**
 * Stores the records of the OAuth library in PostgreSQL. Each change that may happen only once,
 * such as the use of a code, is one statement.
 */
@Injectable()
export class Adapters {
  readonly #pollInterval: number;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly manager: EntityManager,
    private readonly batchedQueries: BatchedQueries,
    private readonly grantAdapter: GrantAdapter,
  ) {
    this.#pollInterval = config.oidc.deviceCode.pollIntervalSeconds;
  }

  /**
   * Returns the object by which the OAuth library reads and writes the records of one model, such
   * as `AccessToken`. A model is the library's word for a kind of record.
   */
  of(model: string, currentContext: CurrentContext): Adapter {
    const shared = this.#artifactAdapter(model, currentContext);
    switch (model) {
      case 'Grant':
        return { ...shared, ...this.grantAdapter.of(currentContext) };
      case 'AccessToken':
      case 'ClientCredentials':
        return {
          ...shared,
          upsert: (id, payload, expiresIn) =>
            this.#issue(currentContext, artifactOf(model, id, payload, expiresIn), payload),
          destroy: (id) => this.#destroyToken(currentContext, model, id),
        };
      case 'DeviceCode':
        return {
          ...shared,
          find: async (id) => {
            if (currentContext()?.oidc.route === 'token') await this.#countPoll(id);
            return shared.find(id);
          },
        };
      case PUSHED:
        return {
          ...shared,
          find: async (id) => {
            const found = await shared.find(id);
            // The OAuth library would go on without the pushed request, as if it were unused.
            if (!found && currentContext()?.oidc.route === 'resume') throw pushedRequestOver();
            return found;
          },
        };
      case 'Interaction':
        return {
          ...shared,
          upsert: async (id, payload, expiresIn = 0) => {
            await shared.upsert(id, payload, expiresIn);
            await this.#keepPushed(payload['parJti'], expiresIn);
          },
          find: async (id) => {
            const found = await shared.find(id);
            return found?.consumed === undefined ? found : undefined;
          },
          destroy: (id) => this.#endInteraction({ model, id: artifactId(id) }),
        };
      default:
        return shared;
    }
  }

  /**
   * Begins to look up a client and an access token at the same time. The token may be one of a user
   * or of a client. The OAuth library looks them up one after another, and decides about the token
   * only after it has authenticated the client.
   */
  lookAhead(request: HasRequest, clientId: string | undefined, token: unknown): void {
    if (clientId === undefined || typeof token !== 'string') return;
    lookAhead(request, 'Client', clientId, this.batchedQueries.findClient(clientId));
    for (const model of ['AccessToken', 'ClientCredentials']) {
      const found = this.batchedQueries.findArtifact({ model, id: artifactId(token) });
      lookAhead(request, model, token, found);
    }
  }

  /**
   * Removes up to `most` expired rows. It is called for each authorization request that came by
   * POST and is stored. So a flood of these requests leaves few rows until the next clean-up.
   */
  removeExpired(most: number): Promise<void> {
    return removeExpiredArtifacts(this.manager, most);
  }

  /**
   * Undoes what a token request did before it failed. If the key service did not sign, its tokens
   * are revoked, and its code can be redeemed again. After any other fault, and after a refusal,
   * the session that its code opened is ended.
   */
  async undoFailed(ctx: KoaContextWithOIDC): Promise<void> {
    const { authorizationError: error } = requestContextOf(ctx);
    const isUnsigned = error instanceof DomainError && error.code === 'kms_unavailable';
    await (isUnsigned
      ? this.#withdrawUnsigned(ctx, error)
      : this.grantAdapter.endFailedSession(ctx));
  }

  /**
   * Undoes a token request for which the key service did not sign the token. The tokens of the
   * request are revoked, and its code can be redeemed again, because the client has received no
   * token.
   */
  async #withdrawUnsigned(ctx: KoaContextWithOIDC, error: DomainError): Promise<void> {
    const { consumed, issued = [] } = requestContextOf(ctx);
    const details = { client_id: ctx.oidc.client?.clientId, reason: error.code };
    const origin = originOf(requestOf(ctx));
    await withTransactionRetry(this.manager, async (tx) => {
      for (const token of issued) {
        await revokeArtifact(tx, token, { auditId: newUuid(), origin, details });
      }
      if (consumed) await releaseArtifact(tx, consumed);
    });
  }

  #artifactAdapter(model: string, currentContext: CurrentContext): Adapter {
    const key = (id: string) => ({ model, id: artifactId(id) });
    return {
      upsert: (id, payload, expiresIn) => {
        const ctx = currentContext();
        if (ctx) noteRow(ctx.req);
        return this.#write(artifactOf(model, id, payload, expiresIn), ctx?.oidc.route);
      },
      find: async (id) => {
        const ahead = takeAhead(currentContext(), model, id) as FoundArtifact | undefined;
        const found = await (ahead ?? this.batchedQueries.findArtifact(key(id)));
        if (!found) return undefined;
        noteFound(currentContext, found);
        return { ...found.payload, jti: id, consumed: found.consumed };
      },
      consume: (id) => this.#consume(currentContext, model, id),
      destroy: async (id) => {
        await destroyArtifact(this.manager, key(id));
      },
      revokeByGrantId: async (grantId) => {
        // The grant ends a few seconds later, and this artifact (a code or token) ends with it.
        if (isReusedAtOnce(currentContext)) return;
        const id = artifactId(grantId);
        await destroyArtifactsOfGrant(this.manager, model, id);
      },
      // The OAuth library needs neither of these look-ups here. Our tokens do not end with a
      // session of the library, and the page /device finds device codes itself.
      findByUid: () => Promise.resolve(undefined),
      findByUserCode: () => Promise.resolve(undefined),
    };
  }

  /**
   * Marks a code or a pushed request as used. If our command-line client `svc-cli` redeems its
   * code, the grant moves from the browser's session to a new session. If two requests use one code
   * at the same moment, the code counts as stolen, and its grant ends (RFC 6749 §4.1.2). The OAuth
   * library itself notices a code that was used earlier.
   */
  async #consume(currentContext: CurrentContext, model: string, id: string): Promise<void> {
    const key = { model, id: artifactId(id) };
    if (await this.batchedQueries.consume(key)) {
      const ctx = currentContext();
      if (!ctx) return;
      requestContextOf(ctx).consumed = key;
      const isOfCommand = ctx.oidc.client?.clientId === CLI_CLIENT_ID;
      if (model === 'AuthorizationCode' && isOfCommand)
        await this.grantAdapter.moveToOwnSession(ctx);
      return;
    }
    const [first] = await findArtifacts(this.manager, [key]);
    const grantId = first?.payload['grantId'];
    if (typeof grantId === 'string') await this.grantAdapter.endSoon(grantId);
    throw model === PUSHED ? pushedRequestOver() : new errors.InvalidGrant('it was already used');
  }

  /**
   * Keeps the row of a pushed request for as long as an authorization request waits for its user,
   * and a minute more. The pushed request is marked as used only when its code is issued. If the
   * clean-up deleted the row before, two browser tabs could each get a code for it.
   */
  async #keepPushed(pushed: unknown, seconds: number): Promise<void> {
    if (typeof pushed !== 'string') return;
    await keepArtifact(this.manager, { model: PUSHED, id: artifactId(pushed) }, seconds + 60);
  }

  /**
   * Marks a waiting authorization request (an interaction) as used when it is resumed. Of several
   * requests at the same moment only one resumes it, so that one touch of the key or one consent
   * gives one code. The row stays until it expires. Otherwise a page that the browser opened
   * earlier could store the authorization request again.
   *
   * @throws SessionNotFound if the authorization request was already resumed, or has ended
   */
  async #endInteraction(key: ArtifactKey): Promise<void> {
    if (await this.batchedQueries.consume(key)) return;
    throw new errors.SessionNotFound('the interaction was already resumed');
  }

  /**
   * Counts a poll, which is a device's question if its code is approved (RFC 8628 §3.5). The
   * interval between polls becomes longer if a poll came too soon.
   * @throws SlowDown for a poll that came too soon
   */
  async #countPoll(deviceCode: string): Promise<void> {
    const id = artifactId(deviceCode);
    if (await pollDeviceCode(this.manager, id, this.#pollInterval)) {
      throw new errors.SlowDown();
    }
  }

  /**
   * Ends a token. If a client revokes the token (RFC 7009), an audit row is written, and the tokens
   * into which it was exchanged also end.
   */
  async #destroyToken(currentContext: CurrentContext, model: string, id: string): Promise<void> {
    const ctx = currentContext();
    const key = { model, id: artifactId(id) };
    if (ctx?.oidc.route !== 'revocation') {
      await destroyArtifact(this.manager, key);
      return;
    }
    const audit = {
      auditId: newUuid(),
      origin: originOf(requestOf(ctx)),
      details: { client_id: ctx.oidc.client?.clientId },
    };
    const grantId = requestContextOf(ctx).grant?.id;
    await withTransactionRetry(this.manager, async (tx) => {
      if (grantId !== undefined) await this.grantAdapter.destroyChildren(tx, grantId);
      await revokeArtifact(tx, key, audit);
    });
  }

  /**
   * Stores a record. If the record can no longer be stored, the error at the authorization endpoint
   * is `access_denied`, because an authorization response cannot contain `invalid_grant` (RFC 6749
   * §4.1.2.1).
   *
   * @throws AccessDenied or InvalidGrant if the session, the account or the client has ended
   */
  async #write(artifact: Artifact, route: string | undefined): Promise<void> {
    const writing = this.batchedQueries.writeArtifact(artifact).then(() => true);
    if (await orIfGone(writing, false)) return;
    const isAuthorization = route === 'authorization' || route === 'resume';
    const Refusal = isAuthorization ? errors.AccessDenied : errors.InvalidGrant;
    throw new Refusal('the session has ended');
  }

  /** Stores a token and its audit row. */
  async #issue(
    currentContext: CurrentContext,
    artifact: Artifact,
    payload: AdapterPayload,
  ): Promise<void> {
    const ctx = currentContext();
    if (!ctx) throw new Error('a token is issued outside a request');
    // Earlier steps have removed the scopes that need a DPoP proof from a request without a proof.
    // This last check refuses the token if one of these steps has a mistake.
    const scopes = scopeWords(payload.scope);
    if (boundScopes(scopes, payload.jkt !== undefined).length < scopes.length) {
      throw new errors.InvalidGrant(`${scopes.join(' ')} needs a DPoP proof`);
    }
    const { subject, cluster } = requestContextOf(ctx);
    const audit = {
      auditId: newUuid(),
      origin: originOf(requestOf(ctx)),
      ...(subject ? { exchange: exchangeAudit(payload, subject.clientId, cluster?.id) } : {}),
      details: {
        client_id: payload.clientId,
        grant_type: payload.gty ?? 'client_credentials',
        scope: payload.scope,
        audience: payload.aud,
      },
    };
    const audience = typeof payload.aud === 'string' ? { audience: payload.aud } : {};
    const issuing = this.#issuing({ ...artifact, ...audience }, audit, cluster?.id);
    const outcome = await orIfGone(issuing, GONE);
    if ('denial' in outcome) {
      if (isAboutReach(outcome)) throw await this.grantAdapter.refuse(ctx, artifact, outcome);
      if (!cluster) await this.grantAdapter.assertFree(audience.audience);
      throw new errors.InvalidGrant('the session has ended');
    }
    (requestContextOf(ctx).issued ??= []).push({ model: artifact.model, id: artifact.id });
  }

  #issuing(artifact: Artifact, audit: TokenAudit, clusterId?: string): Promise<Outcome<true>> {
    const { batchedQueries } = this;
    if (artifact.model !== 'AccessToken') return batchedQueries.issueToClient(artifact, audit);
    return clusterId === undefined
      ? batchedQueries.issueToUser(artifact, audit)
      : batchedQueries.issueForCluster(artifact, audit, clusterId);
  }
}

/** Makes the error for a pushed request that has expired or gave a code before. */
function pushedRequestOver(): Error {
  return new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used');
}

/**
 * Stores the grant of a found code or token in the request context, because the OAuth library looks
 * the grant up next. It also stores whether the code was redeemed less than {@link AT_ONCE} seconds
 * ago.
 */
function noteFound(
  currentContext: CurrentContext,
  { payload, grant, consumedAgo }: StoredArtifact,
): void {
  const ctx = currentContext();
  if (!ctx) return;
  const context = requestContextOf(ctx);
  const { grantId: id, authTime } = payload;
  if (typeof authTime === 'number') context.codeAuthTime = authTime;
  if (consumedAgo !== undefined) context.isReusedAtOnce = consumedAgo < AT_ONCE;
  if (typeof id === 'string') context.grant = { id, found: grant };
}

function isReusedAtOnce(currentContext: CurrentContext): boolean {
  const ctx = currentContext();
  return ctx !== undefined && requestContextOf(ctx).isReusedAtOnce === true;
}

/**
 * Returns the facts of a token exchange (RFC 8693) for its audit row: the client, the client of the
 * exchanged token, and the new scope.
 */
function exchangeAudit(payload: AdapterPayload, subjectClientId: string, clusterId?: string) {
  const { clientId, scope = '', aud } = payload;
  return {
    auditId: newUuid(),
    details: {
      client_id: clientId,
      subject_client_id: subjectClientId,
      scope,
      audience: aud,
      ...(clusterId === undefined ? {} : { application_id: clusterId }),
    },
  };
}
