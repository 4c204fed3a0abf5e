import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import type { Artifact, StoredArtifact } from './artifact.js';
import { ArtifactsRepository, type ArtifactKey } from './artifacts.repository.js';
import { ClientsRepository, type LiveClient } from './clients.repository.js';
import type { ResourceOwner } from './resource-owner.js';
import { GrantsRepository, type ChildGrantRow, type GrantRow } from './grants.repository.js';
import { IssuedTokensRepository, type Issue, type TokenAudit } from './issued-tokens.repository.js';
import type { LiveGrant } from './live-grant.js';
import { ReplaysRepository, type Spend } from './replays.repository.js';

/**
 * What the protocol asks of the database in nearly every request, together with what others ask at the time. Each is a
 * statement that stands alone and begins after it was asked for: nothing is kept of an answer.
 */
@Injectable()
export class BatchedQueries {
  readonly #artifacts: QueryBatcher<ArtifactKey, StoredArtifact | undefined>;
  readonly #clients: QueryBatcher<string, LiveClient | undefined>;
  readonly #grants: QueryBatcher<Buffer, LiveGrant | undefined>;
  readonly #holders: QueryBatcher<Buffer, ResourceOwner | undefined>;
  readonly #ofClients: QueryBatcher<Issue, boolean>;
  readonly #ofPeople: QueryBatcher<Issue, boolean>;
  readonly #writes: QueryBatcher<Artifact, boolean>;
  readonly #uses: QueryBatcher<ArtifactKey, boolean>;
  readonly #newGrants: QueryBatcher<GrantRow, boolean>;
  readonly #spends: QueryBatcher<Spend, boolean>;

  constructor(
    private readonly manager: EntityManager,
    private readonly artifacts: ArtifactsRepository,
    clients: ClientsRepository,
    private readonly grants: GrantsRepository,
    private readonly issued: IssuedTokensRepository,
    replays: ReplaysRepository,
  ) {
    this.#artifacts = new QueryBatcher((keys) => artifacts.find(manager, keys));
    this.#clients = new QueryBatcher((ids) => clients.findLive(manager, ids));
    this.#grants = new QueryBatcher((ids) => grants.find(manager, ids));
    this.#holders = new QueryBatcher((hashes) => grants.resourceOwnersOfBrowsers(manager, hashes));
    this.#ofClients = new QueryBatcher((issues) => issued.issueToClients(manager, issues));
    this.#ofPeople = new QueryBatcher((issues) => issued.issueToPeople(manager, issues));
    this.#writes = new QueryBatcher((rows) => artifacts.upsertMany(manager, rows));
    this.#uses = new QueryBatcher((keys) => artifacts.consumeMany(manager, keys));
    this.#newGrants = new QueryBatcher((rows) => grants.insertMany(manager, rows));
    this.#spends = new QueryBatcher((spends) => replays.spend(manager, spends));
  }

  /** {@link ArtifactsRepository.find} */
  findArtifact(key: ArtifactKey): Promise<StoredArtifact | undefined> {
    return this.#artifacts.load(key);
  }

  /** {@link ClientsRepository.findLive} */
  findClient(id: string): Promise<LiveClient | undefined> {
    return this.#clients.load(id);
  }

  /** {@link GrantsRepository.find} */
  findGrant(id: Buffer): Promise<LiveGrant | undefined> {
    return this.#grants.load(id);
  }

  /** {@link GrantsRepository.resourceOwnersOfBrowsers} */
  findResourceOwnerOfBrowser(tokenHash: Buffer): Promise<ResourceOwner | undefined> {
    return this.#holders.load(tokenHash);
  }

  // What is written goes by itself where the rows behind it are locked, or not what they should be: that waits, and decides.

  /** {@link IssuedTokensRepository.issueToClient} */
  async issueToClient(token: Artifact, audit: TokenAudit): Promise<boolean> {
    const isIssued = await this.#ofClients.load({ token, audit });
    return isIssued || this.issued.issueToClient(this.manager, token, audit);
  }

  /** {@link IssuedTokensRepository.issueToPerson}; what a token exchange gives goes by itself. */
  async issueToPerson(token: Artifact, audit: TokenAudit): Promise<boolean> {
    const isIssued = audit.exchange === undefined && (await this.#ofPeople.load({ token, audit }));
    return isIssued || this.issued.issueToPerson(this.manager, token, audit);
  }

  /** {@link ArtifactsRepository.upsert} */
  async writeArtifact(artifact: Artifact): Promise<void> {
    const isWritten = await this.#writes.load(artifact);
    if (!isWritten) await this.artifacts.upsert(this.manager, artifact);
  }

  /** {@link ArtifactsRepository.consume} */
  async consume(key: ArtifactKey): Promise<boolean> {
    const isConsumed = await this.#uses.load(key);
    return isConsumed || this.artifacts.consume(this.manager, key);
  }

  /** {@link GrantsRepository.upsert} */
  async writeGrant(grant: GrantRow): Promise<boolean> {
    const isWritten = await this.#newGrants.load(grant);
    return isWritten || this.grants.upsert(this.manager, grant);
  }

  /** {@link GrantsRepository.insertChild}, which always goes by itself. */
  writeChildGrant(grant: ChildGrantRow): Promise<boolean> {
    return this.grants.insertChild(this.manager, grant);
  }

  /** {@link ReplaysRepository.spend} */
  spend(issuer: string, jti: string, expiresAt: Date): Promise<boolean> {
    return this.#spends.load({ issuer, jti, expiresAt });
  }
}
