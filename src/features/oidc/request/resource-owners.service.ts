import { Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { expectedDenial } from '#domain/access/issuance/expected-denial.repository.js';
import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import { artifactId } from '#domain/oauth/grants/artifact.js';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import {
  findCluster,
  isRegisteredResource,
} from '#domain/oauth/applications/applications.repository.js';
import {
  findConsent,
  type RecordedConsent,
} from '#domain/oauth/clients/dynamic-clients.repository.js';
import {
  listGrantsOfSession,
  resourceOwnerOfSession,
} from '#domain/oauth/grants/grants.repository.js';
import type { LiveGrant } from '#domain/oauth/grants/live-grant.js';
import type { ResourceOwner, UserProfile } from '#domain/oauth/grants/resource-owner.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { asksForProfile } from '../protocol/claims.js';
import { errors } from '../protocol/library.js';
import { recordRefusedReach, type RefusedRequest } from './refused-reach.js';
import { requestContextOf, requestOf, type HasRequest } from './request-context.js';

/**
 * Looks up the user (the resource owner, RFC 6749 §1.1) that a request is about, once for each
 * request.
 */
@Injectable()
export class ResourceOwners {
  constructor(
    private readonly manager: EntityManager,
    private readonly batchedQueries: BatchedQueries,
    private readonly sessionCookies: SessionCookies,
  ) {}

  /**
   * Finds the user of the browser's session; undefined unless the user has logged in with a
   * security key.
   */
  async ofBrowser(ctx: HasRequest): Promise<ResourceOwner | undefined> {
    const context = requestContextOf(ctx);
    if (context.resourceOwner === undefined) {
      const token = this.sessionCookies.token(requestOf(ctx));
      const found = token
        ? await this.batchedQueries.findResourceOwnerOfBrowser(hashOpaqueToken(token))
        : undefined;
      context.resourceOwner = found ?? null;
    }
    return context.resourceOwner ?? undefined;
  }

  /** Finds the user who gave a grant; undefined if the grant has ended. */
  async ofGrant(ctx: HasRequest, grantId: string): Promise<ResourceOwner | undefined> {
    const grant = await this.findGrant(ctx, grantId);
    const resourceOwner = grant === undefined || grant.isOver ? null : grant.resourceOwner;
    requestContextOf(ctx).resourceOwner = resourceOwner;
    return resourceOwner ?? undefined;
  }

  /**
   * Finds a grant and its user by the id of the grant in the OAuth library's records. The result is
   * undefined if no tokens may be issued for the grant any more. The grant is kept for the rest of
   * the request, so that one query is enough.
   */
  async findGrant(ctx: HasRequest, grantId: string): Promise<LiveGrant | undefined> {
    const context = requestContextOf(ctx);
    if (context.grant?.id !== grantId) {
      const found = await this.batchedQueries.findGrant(artifactId(grantId));
      context.grant = { id: grantId, found };
    }
    return context.grant.found;
  }

  /** Finds the user of a session; undefined if the session has ended. */
  async ofSession(ctx: HasRequest, sessionId: string): Promise<ResourceOwner | undefined> {
    const found = await resourceOwnerOfSession(this.manager, sessionId);
    requestContextOf(ctx).resourceOwner = found ?? null;
    return found;
  }

  /**
   * Finds the profile of a user. If the request asks for no claim of the profile, as most requests
   * do, it returns undefined without a query.
   */
  async profileOf(
    { userId }: ResourceOwner,
    scope: string,
    claims: object = {},
  ): Promise<UserProfile | undefined> {
    return asksForProfile(scope, claims) ? this.batchedQueries.findProfile(userId) : undefined;
  }

  /**
   * Finds the Kubernetes cluster that an organization registered for a resource (the URI of RFC
   * 8707), and returns its id; undefined if there is none. The organization is that of a user or
   * client.
   */
  async clusterOf(
    { orgId }: Pick<ResourceOwner, 'orgId'>,
    resource: string,
  ): Promise<string | undefined> {
    if (orgId === null) return undefined;
    return findCluster(this.manager, orgId, resource);
  }

  /**
   * Finds the consent that a user gave to an application of the user's organization, once for each
   * request. It resolves to undefined if there is none.
   */
  async consentOf(
    ctx: HasRequest,
    { userId }: Pick<ResourceOwner, 'userId'>,
    clientId: string,
  ): Promise<RecordedConsent | undefined> {
    const context = requestContextOf(ctx);
    context.consent ??= findConsent(this.manager, userId, clientId);
    return context.consent;
  }

  /**
   * Refuses a resource that an organization registered as a Kubernetes cluster, because only our
   * command-line client `svc-cli` gets tokens for clusters. A request without a resource
   * (undefined) is accepted.
   *
   * @throws InvalidTarget for the resource of a cluster
   */
  async assertFree(resource: string | undefined): Promise<void> {
    if (resource === undefined) return;
    if (await isRegisteredResource(this.manager, resource)) {
      throw new errors.InvalidTarget('only svc-cli gets tokens for this resource, for its owners');
    }
  }

  /**
   * Returns the reason why a client would not admit the user of a session now; undefined if it
   * would. The check is early, and the statement that saves the grant decides again.
   */
  expectedDenial(
    { sessionId }: Pick<ResourceOwner, 'sessionId'>,
    clientId: string,
  ): Promise<Denied | undefined> {
    return expectedDenial(this.manager, sessionId, clientId);
  }

  /**
   * Records in the audit log that a user may not use the application of the request, or the cluster
   * of its token.
   */
  recordRefusedReach(ctx: RefusedRequest, userId: string, denied: Denied): Promise<void> {
    return recordRefusedReach(this.manager, ctx, userId, denied);
  }

  /** Lists the data of the grants that a user gave to a client in a session. */
  listGrants(sessionId: string, clientId: string) {
    return listGrantsOfSession(this.manager, sessionId, clientId);
  }
}
