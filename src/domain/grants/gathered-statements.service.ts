import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { Gather } from '#platform/database/gather.js';
import type { Artifact, StoredArtifact } from './artifact.js';
import { ArtifactsRepository, type ArtifactKey, type TokenAudit } from './artifacts.repository.js';
import { ClientsRepository, type LiveClient } from './clients.repository.js';
import type { GrantHolder } from './grant-holder.js';
import { GrantsRepository, type LiveGrant } from './grants.repository.js';
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
  readonly #tokens: Gather<{ readonly token: Artifact; readonly audit: TokenAudit }, boolean>;
  readonly #spends: Gather<Spend, boolean>;

  constructor(
    private readonly manager: EntityManager,
    private readonly artifacts: ArtifactsRepository,
    clients: ClientsRepository,
    grants: GrantsRepository,
    replays: ReplaysRepository,
  ) {
    this.#artifacts = new Gather((keys) => artifacts.find(manager, keys));
    this.#clients = new Gather((ids) => clients.findLive(manager, ids));
    this.#grants = new Gather((ids) => grants.find(manager, ids));
    this.#holders = new Gather((hashes) => grants.holdersOfBrowsers(manager, hashes));
    this.#tokens = new Gather((issues) => artifacts.issueToClients(manager, issues));
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

  /** {@link ArtifactsRepository.issueToClient}: by itself where the rows behind it are locked, or not what they should be. */
  async issueToClient(token: Artifact, audit: TokenAudit): Promise<boolean> {
    const isIssued = await this.#tokens.ask({ token, audit });
    return isIssued || this.artifacts.issueToClient(this.manager, token, audit);
  }

  /** {@link ReplaysRepository.spend} */
  spend(issuer: string, jti: string, expiresAt: Date): Promise<boolean> {
    return this.#spends.ask({ issuer, jti, expiresAt });
  }
}
