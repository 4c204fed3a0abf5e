import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { Gather } from '#platform/database/statements/query-batcher.js';
import type { Artifact, StoredArtifact } from './artifact.js';
import { ArtifactsRepository, type ArtifactKey } from './artifacts.repository.js';
import { ClientsRepository, type LiveClient } from './clients.repository.js';
import type { GrantHolder } from './resource-owner.js';
import { GrantsRepository, type ChildGrantRow, type GrantRow } from './grants.repository.js';
import { IssuedTokensRepository, type Issue, type TokenAudit } from './issued-tokens.repository.js';
import type { LiveGrant } from './live-grant.js';
import { ReplaysRepository, type Spend } from './replays.repository.js';

/**
 * What the protocol asks of the database in nearly every request, together with what others ask at the time. Each is a
 * statement that stands alone and begins after it was asked for: nothing is kept of an answer.
 */
@Injectable()
export class GatheredStatements {
  readonly #artifacts: Gather<ArtifactKey, StoredArtifact | undefined>;
  readonly #clients: Gather<string, LiveClient | undefined>;
  readonly #grants: Gather<Buffer, LiveGrant | undefined>;
  readonly #holders: Gather<Buffer, GrantHolder | undefined>;
  readonly #ofClients: Gather<Issue, boolean>;
  readonly #ofPeople: Gather<Issue, boolean>;
  readonly #writes: Gather<Artifact, boolean>;
  readonly #uses: Gather<ArtifactKey, boolean>;
  readonly #newGrants: Gather<GrantRow, boolean>;
  readonly #spends: Gather<Spend, boolean>;

  constructor(
    private readonly manager: EntityManager,
    private readonly artifacts: ArtifactsRepository,
    clients: ClientsRepository,
    private readonly grants: GrantsRepository,
    private readonly issued: IssuedTokensRepository,
    replays: ReplaysRepository,
  ) {
    this.#artifacts = new Gather((keys) => artifacts.find(manager, keys));
    this.#clients = new Gather((ids) => clients.findLive(manager, ids));
    this.#grants = new Gather((ids) => grants.find(manager, ids));
    this.#holders = new Gather((hashes) => grants.holdersOfBrowsers(manager, hashes));
    this.#ofClients = new Gather((issues) => issued.issueToClients(manager, issues));
    this.#ofPeople = new Gather((issues) => issued.issueToPeople(manager, issues));
    this.#writes = new Gather((rows) => artifacts.upsertMany(manager, rows));
    this.#uses = new Gather((keys) => artifacts.consumeMany(manager, keys));
    this.#newGrants = new Gather((rows) => grants.insertMany(manager, rows));
    this.#spends = new Gather((spends) => replays.spend(manager, spends));
  }

  /** {@link ArtifactsRepository.find} */
  findArtifact(key: ArtifactKey): Promise<StoredArtifact | undefined> {
    return this.#artifacts.ask(key);
  }

  /** {@link ClientsRepository.findLive} */
  findClient(id: string): Promise<LiveClient | undefined> {
    return this.#clients.ask(id);
  }

  /** {@link GrantsRepository.find} */
  findGrant(id: Buffer): Promise<LiveGrant | undefined> {
    return this.#grants.ask(id);
  }

  /** {@link GrantsRepository.holdersOfBrowsers} */
  findHolderOfBrowser(tokenHash: Buffer): Promise<GrantHolder | undefined> {
    return this.#holders.ask(tokenHash);
  }

  // What is written goes by itself where the rows behind it are locked, or not what they should be: that waits, and decides.

  /** {@link IssuedTokensRepository.issueToClient} */
  async issueToClient(token: Artifact, audit: TokenAudit): Promise<boolean> {
    const isIssued = await this.#ofClients.ask({ token, audit });
    return isIssued || this.issued.issueToClient(this.manager, token, audit);
  }

  /** {@link IssuedTokensRepository.issueToPerson}; what a token exchange gives goes by itself. */
  async issueToPerson(token: Artifact, audit: TokenAudit): Promise<boolean> {
    const isIssued = audit.exchange === undefined && (await this.#ofPeople.ask({ token, audit }));
    return isIssued || this.issued.issueToPerson(this.manager, token, audit);
  }

  /** {@link ArtifactsRepository.upsert} */
  async writeArtifact(artifact: Artifact): Promise<void> {
    const isWritten = await this.#writes.ask(artifact);
    if (!isWritten) await this.artifacts.upsert(this.manager, artifact);
  }

  /** {@link ArtifactsRepository.consume} */
  async consume(key: ArtifactKey): Promise<boolean> {
    const isConsumed = await this.#uses.ask(key);
    return isConsumed || this.artifacts.consume(this.manager, key);
  }

  /** {@link GrantsRepository.upsert} */
  async writeGrant(grant: GrantRow): Promise<boolean> {
    const isWritten = await this.#newGrants.ask(grant);
    return isWritten || this.grants.upsert(this.manager, grant);
  }

  /** {@link GrantsRepository.insertChild}, which always goes by itself. */
  writeChildGrant(grant: ChildGrantRow): Promise<boolean> {
    return this.grants.insertChild(this.manager, grant);
  }

  /** {@link ReplaysRepository.spend} */
  spend(issuer: string, jti: string, expiresAt: Date): Promise<boolean> {
    return this.#spends.ask({ issuer, jti, expiresAt });
  }
}
