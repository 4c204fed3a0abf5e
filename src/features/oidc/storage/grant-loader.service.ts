import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { Client, Grant, KoaContextWithOIDC } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { GrantsRepository } from '#domain/grants/grants.repository.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { newGrant } from '../protocol/grant-id.js';
import { Holders } from '../request/resource-owners.service.js';

/** What a request asks for, as a grant holds it. */
interface Asked {
  readonly scopes: readonly string[];
  readonly claims: readonly string[];
  readonly resources: ReadonlyMap<string, readonly string[]>;
}

/**
 * The grant of an authorization: a new one each time, with what was asked for and no more, so that a stolen code takes
 * nothing else down with it. What a person was asked about once in a session they are not asked about again.
 */
@Injectable()
export class GrantLoader {
  constructor(
    private readonly manager: EntityManager,
    private readonly grants: GrantsRepository,
    private readonly holders: Holders,
  ) {}

  /** @returns undefined where the person has to be asked first */
  async load(ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
    const { client, provider, result } = ctx.oidc;
    const holder = await this.holders.ofBrowser(ctx);
    if (!client || !holder) return undefined;
    const asked = askedFor(ctx);
    const isAsked = asksForConsent(client, holder) || isForOthers(client, holder, asked);
    const isDecided = result?.consent !== undefined || !isAsked;
    if (!isDecided && !(await this.#hasAgreed(client.clientId, holder.sessionId, asked))) {
      return undefined;
    }
    const grant = newGrant(provider, holder, client.clientId);
    if (asked.scopes.length > 0) grant.addOIDCScope([...asked.scopes].join(' '));
    if (asked.claims.length > 0) grant.addOIDCClaims([...asked.claims]);
    for (const [resource, scopes] of asked.resources) {
      grant.addResourceScope(resource, scopes.join(' '));
    }
    await grant.save();
    return grant;
  }

  /**
   * Whether a native client needs consent in each authorization: the library asks for it of every one, since another program
   * may pass for it (RFC 8252 §8.6). An application that a user or a colleague registered is known, and is not asked about.
   */
  async asksForNative(ctx: KoaContextWithOIDC): Promise<boolean> {
    const client: (Client & OwnMetadata) | undefined = ctx.oidc.client;
    if (client?.applicationType !== 'native' || ctx.oidc.result?.consent !== undefined) {
      return false;
    }
    const holder = await this.holders.ofBrowser(ctx);
    const isOwn = client.svc_kind === 'application' && holder && !asksForConsent(client, holder);
    return !isOwn;
  }

  /** Whether all that is asked for was agreed to before, in this session. */
  async #hasAgreed(clientId: string, sessionId: string, asked: Asked): Promise<boolean> {
    const earlier = await this.grants.listOfSession(this.manager, sessionId, clientId);
    const payloads = earlier as readonly GrantPayload[];
    const scopes = new Set(payloads.flatMap(({ openid }) => openid?.scope?.split(' ') ?? []));
    const claims = new Set(payloads.flatMap(({ openid }) => openid?.claims ?? []));
    const hasResource = ([resource, wanted]: readonly [string, readonly string[]]) => {
      const had = new Set(
        payloads.flatMap((payload) => payload.resources?.[resource]?.split(' ') ?? []),
      );
      return wanted.every((scope) => had.has(scope));
    };
    return (
      payloads.length > 0 &&
      asked.scopes.every((scope) => scopes.has(scope)) &&
      asked.claims.every((claim) => claims.has(claim)) &&
      [...asked.resources].every(hasResource)
    );
  }
}

/** What is read of a grant that was given before. */
interface GrantPayload {
  readonly openid?: { readonly scope?: string; readonly claims?: readonly string[] };
  readonly resources?: Readonly<Record<string, string>>;
}

function askedFor(ctx: KoaContextWithOIDC): Asked {
  const { requestParamOIDCScopes, requestParamClaims, requestParamScopes, resourceServers } =
    ctx.oidc;
  const resources = Object.entries(resourceServers ?? {}).map(([resource, server]) => {
    const known = new Set(server.scope?.split(' '));
    return [resource, [...requestParamScopes].filter((scope) => known.has(scope))] as const;
  });
  return {
    scopes: [...requestParamOIDCScopes],
    claims: [...requestParamClaims],
    resources: new Map(resources.filter(([, scopes]) => scopes.length > 0)),
  };
}

/**
 * Whether a person is asked before a client learns anything of them: always for one that registered itself, and for one
 * from outside their own organization. The synthetic person of certification test mode, which is nobody, is not asked.
 */
export function asksForConsent(client: Client & OwnMetadata, holder: ResourceOwner): boolean {
  if (client.svc_kind === 'first-party' || !holder.hardwareVerified) return false;
  if (client.svc_kind === 'dynamic') return true;
  return client.svc_org === undefined
    ? client.svc_owner !== holder.userId
    : client.svc_org !== holder.orgId;
}

/**
 * Whether a colleague's application wants to act for somebody at a resource server: nothing says that the server is the
 * application's own, nor that anybody there knows of it.
 */
function isForOthers(client: Client & OwnMetadata, holder: ResourceOwner, asked: Asked): boolean {
  const isChecked = client.svc_kind === 'first-party' || client.svc_owner === holder.userId;
  return holder.hardwareVerified && !isChecked && asked.resources.size > 0;
}
