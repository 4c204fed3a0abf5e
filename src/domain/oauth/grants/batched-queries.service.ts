import { Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { Issuance, type Outcome } from '#domain/access/issuance/issuance.repository.js';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import type { Artifact, StoredArtifact } from './artifact.js';
import {
  consumeArtifacts,
  findArtifacts,
  upsertArtifacts,
  type ArtifactKey,
} from './artifacts.repository.js';
import { ClientsRepository, type LiveClient } from '../clients/clients.repository.js';
import type { ResourceOwner, UserProfile } from './resource-owner.js';
import {
  findGrants,
  profilesOf,
  resourceOwnersOfBrowsers,
  GRANT,
  type GrantRequest,
} from './grants.repository.js';
import type { LiveGrant } from './live-grant.js';
import { CLIENT_TOKEN, CLUSTER_TOKEN, USER_TOKEN, type TokenAudit } from './tokens.repository.js';
import { spendIds, type Spend } from './spent-ids.repository.js';

/**
 * Runs the queries that nearly every OAuth request needs. Requests that arrive at the same time
 * share a statement, which costs the database less. Each statement begins after the last request
 * that it serves has arrived, and no result is cached. So a revocation has effect at once.
 */
@Injectable()
export class BatchedQueries {
  readonly #artifacts: QueryBatcher<ArtifactKey, StoredArtifact | undefined>;
  readonly #clients: QueryBatcher<string, LiveClient | undefined>;
  readonly #grants: QueryBatcher<Buffer, LiveGrant | undefined>;
  readonly #resourceOwners: QueryBatcher<Buffer, ResourceOwner | undefined>;
  readonly #writes: QueryBatcher<Artifact, boolean>;
  readonly #uses: QueryBatcher<ArtifactKey, boolean>;
  readonly #profiles: QueryBatcher<string, UserProfile | undefined>;
  readonly #spends: QueryBatcher<Spend, boolean>;

  constructor(
    private readonly manager: EntityManager,
    clients: ClientsRepository,
    private readonly issuance: Issuance,
  ) {
    this.#artifacts = new QueryBatcher((keys) => findArtifacts(manager, keys));
    this.#clients = new QueryBatcher((ids) => clients.findLive(manager, ids));
    this.#grants = new QueryBatcher((ids) => findGrants(manager, ids));
    this.#resourceOwners = new QueryBatcher((hashes) => resourceOwnersOfBrowsers(manager, hashes));
    this.#writes = new QueryBatcher((rows) => upsertArtifacts(manager, rows, 'skip'));
    this.#uses = new QueryBatcher((keys) => consumeArtifacts(manager, keys, 'skip'));
    this.#profiles = new QueryBatcher((ids) => profilesOf(manager, ids));
    this.#spends = new QueryBatcher((spends) => spendIds(manager, spends));
  }

  /**
   * Finds an artifact with its grant and the resource owner, by {@link findArtifacts}; undefined if
   * there is none.
   */
  findArtifact(key: ArtifactKey): Promise<StoredArtifact | undefined> {
    return this.#artifacts.load(key);
  }

  /**
   * Finds a client that is still allowed to act, by {@link ClientsRepository.findLive}; undefined
   * for any other id.
   */
  findClient(id: string): Promise<LiveClient | undefined> {
    return this.#clients.load(id);
  }

  /**
   * Finds a grant to whose resource owner tokens may still be issued, by {@link findGrants};
   * undefined for any other grant.
   */
  findGrant(id: Buffer): Promise<LiveGrant | undefined> {
    return this.#grants.load(id);
  }

  /**
   * Finds the resource owner of a browser session by the hash of the session token, by
   * {@link resourceOwnersOfBrowsers}.
   */
  findResourceOwnerOfBrowser(tokenHash: Buffer): Promise<ResourceOwner | undefined> {
    return this.#resourceOwners.load(tokenHash);
  }

  /**
   * Finds the profile of a user, such as the names, by {@link profilesOf}; undefined if the user
   * was removed.
   */
  findProfile(userId: string): Promise<UserProfile | undefined> {
    return this.#profiles.load(userId);
  }

  // The shared statements of the writes below, except that of `spend`, do not wait for row locks,
  // so that one locked row does not delay the other requests. A write that was left out for a
  // locked row is repeated in a statement of its own, which waits for the lock and decides.

  /**
   * Issues a token to a client itself, not for a user, or returns the reason why the client gets
   * none.
   */
  issueToClient(token: Artifact, audit: TokenAudit): Promise<Outcome<true>> {
    return this.issuance.issue(CLIENT_TOKEN, { token, audit });
  }

  /** Issues a token to a client that acts for a user, or returns the reason why none is issued. */
  issueToUser(token: Artifact, audit: TokenAudit): Promise<Outcome<true>> {
    return this.issuance.issue(USER_TOKEN, { token, audit });
  }

  /**
   * Issues a token with which a user can use a Kubernetes cluster, or returns the reason why the
   * user gets none.
   */
  issueForCluster(
    token: Artifact,
    audit: TokenAudit,
    applicationId: string,
  ): Promise<Outcome<true>> {
    return this.issuance.issue(CLUSTER_TOKEN, { token, audit, applicationId });
  }

  /** Writes a grant, or returns the reason why it is not written. */
  writeGrant(grant: GrantRequest): Promise<Outcome<true>> {
    return this.issuance.issue(GRANT, grant);
  }

  /** Writes a new or an existing artifact, by {@link upsertArtifacts}. */
  async writeArtifact(artifact: Artifact): Promise<void> {
    const isWritten = await this.#writes.load(artifact);
    if (!isWritten) await upsertArtifacts(this.manager, [artifact], 'wait');
  }

  /**
   * Consumes an artifact by {@link consumeArtifacts}, so that it is used once. The result is true
   * for exactly one caller.
   */
  async consume(key: ArtifactKey): Promise<boolean> {
    if (await this.#uses.load(key)) return true;
    const [isConsumed = false] = await consumeArtifacts(this.manager, [key], 'wait');
    return isConsumed;
  }

  /**
   * Spends the id of a client assertion or a DPoP proof by {@link spendIds}, so that it is used
   * once. The result is true for exactly one caller.
   */
  spend(issuer: string, jti: string, expiresAt: Date): Promise<boolean> {
    return this.#spends.load({ issuer, jti, expiresAt });
  }
}
