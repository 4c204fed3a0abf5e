import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { Provider, errors, type Adapter, type AdapterPayload } from 'oidc-provider';
import { artifactId, type Artifact, type StoredArtifact } from '#domain/grants/artifact.js';
import { ArtifactsRepository } from '#domain/grants/artifacts.repository.js';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';
import { GrantsRepository } from '#domain/grants/grants.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { sqlStateOf } from '#platform/database/statements/faults.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { ClientAdapter } from './client-adapter.service.js';
import { DevicePolls } from './device-polls.service.js';
import { exchangeOf, requestOf } from '../request/request-context.js';
import { ADMIN_SCOPE, boundScopes, scopeWords } from '../protocol/scopes.js';
import { sessionIdOfGrant } from '../protocol/grant-id.js';
import { Holders } from '../request/resource-owners.service.js';

/** PostgreSQL's word for a reference to what is gone. */
const FOREIGN_KEY_VIOLATION = '23503';

/** Seconds in which the first of two who redeem a code may still be waiting for the answer. */
const AT_ONCE = 0.5;

/** The library's storage: one adapter a model, all of them on PostgreSQL, and once-only acts by one statement each. */
@Injectable()
export class Adapters {
  constructor(
    private readonly manager: EntityManager,
    private readonly statements: BatchedQueries,
    private readonly artifacts: ArtifactsRepository,
    private readonly grants: GrantsRepository,
    private readonly clients: ClientAdapter,
    private readonly polls: DevicePolls,
    private readonly holders: Holders,
  ) {}

  /** The adapter of a model, by the library's name of it. */
  of(model: string): Adapter {
    const shared = this.#artifactAdapter(model);
    switch (model) {
      case 'Client':
        return { ...shared, ...this.#clientAdapter() };
      case 'Grant':
        return { ...shared, ...this.#grantAdapter() };
      case 'AccessToken':
      case 'ClientCredentials':
        return {
          ...shared,
          upsert: (id, payload, expiresIn) => this.#issue(model, id, payload, expiresIn),
          destroy: (id) => this.#end(model, id),
        };
      case 'DeviceCode':
        return {
          ...shared,
          find: async (id) => {
            if (Provider.ctx?.oidc.route === 'token') await this.polls.count(id);
            return shared.find(id);
          },
        };
      default:
        return shared;
    }
  }

  #artifactAdapter(model: string): Adapter {
    const key = (id: string) => ({ model, id: artifactId(id) });
    return {
      upsert: (id, payload, expiresIn) => this.#write(artifactOf(model, id, payload, expiresIn)),
      find: async (id) => {
        const found = await this.statements.findArtifact(key(id));
        if (!found) return undefined;
        noteReuse(found);
        noteGrant(found);
        return { ...found.payload, jti: id, consumed: found.consumed };
      },
      consume: async (id) => {
        if (await this.statements.consume(key(id))) return;
        // Somebody was faster, in this very moment: with a code that is theft, and what it gives is taken back (RFC 6749
        // §4.1.2). One that comes later the library sees as consumed, and takes its grant back by itself.
        const [first] = await this.artifacts.find(this.manager, [key(id)]);
        const grantId = first?.payload['grantId'];
        if (typeof grantId === 'string') await this.#endSoon(grantId);
        throw model === 'PushedAuthorizationRequest'
          ? new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used')
          : new errors.InvalidGrant('it was already used');
      },
      destroy: (id) => this.artifacts.destroy(this.manager, key(id)),
      revokeByGrantId: async (grantId) => {
        if (isReusedAtOnce()) return; // the grant ends, and this with it
        await this.artifacts.destroyOfGrant(this.manager, model, artifactId(grantId));
      },
      // Sessions of the library carry no token, and device codes are looked up by our own page.
      findByUid: () => Promise.resolve(undefined),
      findByUserCode: () => Promise.resolve(undefined),
    };
  }

  #clientAdapter(): Pick<Adapter, 'find' | 'upsert' | 'destroy'> {
    const { find, upsert, destroy } = this.clients;
    return { find, upsert, destroy };
  }

  #grantAdapter(): Pick<Adapter, 'upsert' | 'find' | 'destroy'> {
    return {
      upsert: async (id, payload, expiresIn = 0) => {
        const grant = {
          id: artifactId(id),
          clientId: payload.clientId ?? '',
          userId: payload.accountId ?? '',
          sessionId: sessionIdOfGrant(id),
          payload: withoutId(payload),
          expiresIn,
        };
        const subject = Provider.ctx && exchangeOf(Provider.ctx).subject;
        if (subject) {
          const parentId = artifactId(subject.grantId);
          const isUnder = await falseIfGone(this.statements.writeGrant({ ...grant, parentId }));
          if (!isUnder) throw new errors.InvalidRequest('the subject token has ended');
          return;
        }
        const written = await falseIfGone(this.statements.writeGrant(grant));
        if (!written) throw new errors.AccessDenied('the session has ended');
      },
      find: async (id) => {
        const ctx = Provider.ctx;
        const found = ctx
          ? await this.holders.grant(ctx, id)
          : await this.statements.findGrant(artifactId(id));
        return found && { ...grantableNow(found.payload), jti: id };
      },
      destroy: async (id) => {
        if (isReusedAtOnce()) await this.#endSoon(id);
        else await this.grants.destroy(this.manager, artifactId(id));
        const ctx = Provider.ctx;
        if (ctx) delete exchangeOf(ctx).grant;
      },
    };
  }

  #endSoon(grantId: string): Promise<void> {
    return this.manager.transaction((tx) => this.grants.endSoon(tx, artifactId(grantId)));
  }

  /** Ends a token; where its client asks for that (RFC 7009), with an audit row, and with what was exchanged for it. */
  async #end(model: string, id: string): Promise<void> {
    const ctx = Provider.ctx;
    const key = { model, id: artifactId(id) };
    if (ctx?.oidc.route !== 'revocation') {
      await this.artifacts.destroy(this.manager, key);
      return;
    }
    const audit = {
      auditId: newUuid(),
      origin: originOf(requestOf(ctx)),
      details: { client_id: ctx.oidc.client?.clientId },
    };
    const grantId = exchangeOf(ctx).grant?.id;
    await this.manager.transaction(async (tx) => {
      if (grantId !== undefined) await this.grants.destroyChildren(tx, artifactId(grantId));
      await this.artifacts.revoke(tx, key, audit);
    });
  }

  async #write(artifact: Artifact): Promise<void> {
    const writing = this.statements.writeArtifact(artifact).then(() => true);
    if (!(await falseIfGone(writing))) throw new errors.InvalidGrant('the session has ended');
  }

  /** Records a token, and its audit row with it. */
  async #issue(
    model: 'AccessToken' | 'ClientCredentials',
    id: string,
    payload: AdapterPayload,
    expiresIn?: number,
  ): Promise<void> {
    const ctx = Provider.ctx;
    if (!ctx) throw new Error('a token is issued outside a request');
    // The scope was left out before in this case. This is the last place that could notice a mistake.
    if (payload.jkt === undefined && scopeWords(payload.scope).includes(ADMIN_SCOPE)) {
      throw new errors.InvalidGrant(`${ADMIN_SCOPE} needs a DPoP proof`);
    }
    const artifact = artifactOf(model, id, payload, expiresIn);
    const { subject } = exchangeOf(ctx);
    const audit = {
      auditId: newUuid(),
      origin: originOf(requestOf(ctx)),
      ...(subject ? { exchange: exchangeAudit(payload, subject.clientId) } : {}),
      details: {
        client_id: payload.clientId,
        grant_type: payload.gty ?? 'client_credentials',
        scope: payload.scope,
        audience: payload.aud,
      },
    };
    const issued = await falseIfGone(
      model === 'AccessToken'
        ? this.statements.issueToUser(artifact, audit)
        : this.statements.issueToClient(artifact, audit),
    );
    if (!issued) throw new errors.InvalidGrant('the session has ended');
  }
}

/**
 * What a grant gives in this request: at the token endpoint `svc:admin` only to a client that proves a DPoP key. The library
 * verifies the proof, and refuses the request if it is not good.
 */
function grantableNow(payload: AdapterPayload): AdapterPayload {
  const ctx = Provider.ctx;
  const openid = payload['openid'] as { readonly scope?: string } | undefined;
  if (ctx?.oidc.route !== 'token' || openid?.scope === undefined) return payload;
  const scopes = boundScopes(scopeWords(openid.scope), ctx.get('DPoP') !== '');
  return { ...payload, openid: { ...openid, scope: scopes.join(' ') } };
}

/** Remembers that a code which comes again was redeemed only seconds ago. */
function noteReuse({ consumedAgo }: StoredArtifact): void {
  const ctx = Provider.ctx;
  if (consumedAgo === undefined || !ctx) return;
  exchangeOf(ctx).isReusedAtOnce = consumedAgo < AT_ONCE;
}

/** Remembers the grant of a code or a token, which the library asks for next. */
function noteGrant({ payload, grant }: StoredArtifact): void {
  const ctx = Provider.ctx;
  const id = payload['grantId'];
  if (ctx && typeof id === 'string') exchangeOf(ctx).grant = { id, found: grant };
}

function isReusedAtOnce(): boolean {
  const ctx = Provider.ctx;
  return ctx !== undefined && exchangeOf(ctx).isReusedAtOnce === true;
}

/** What the audit log keeps of a token exchange (RFC 8693): who exchanged whose token for what. */
function exchangeAudit(payload: AdapterPayload, subjectClientId: string) {
  const { clientId, scope = '', aud } = payload;
  return {
    auditId: newUuid(),
    details: { client_id: clientId, subject_client_id: subjectClientId, scope, audience: aud },
  };
}

function artifactOf(model: string, id: string, payload: AdapterPayload, expiresIn = 0): Artifact {
  const session = payload['session'] as { readonly accountId?: string } | undefined;
  return {
    model,
    id: artifactId(id),
    payload: withoutId(payload),
    grantId: payload.grantId === undefined ? null : artifactId(payload.grantId),
    clientId: payload.clientId ?? null,
    userId: payload.accountId ?? session?.accountId ?? null,
    userCode: payload.userCode ?? null,
    expiresIn,
  };
}

/** The id is the secret: of it only the hash is kept. */
function withoutId({ jti: _secret, ...payload }: AdapterPayload): AdapterPayload {
  return payload;
}

/**
 * Whether something was written. What hangs on a row that is gone cannot be: the account or the client was removed, or the grant
 * revoked, a moment ago.
 */
async function falseIfGone(written: Promise<boolean>): Promise<boolean> {
  try {
    return await written;
  } catch (error) {
    if (sqlStateOf(error) !== FOREIGN_KEY_VIOLATION) throw error;
    return false;
  }
}
