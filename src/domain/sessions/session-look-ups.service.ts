import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import type { LiveSession } from './session.js';
import { SessionsRepository } from './sessions.repository.js';

/** Looks sessions up, together with what others look up at the time. */
@Injectable()
export class SessionLookUps {
  readonly #sessions: QueryBatcher<Buffer, LiveSession | undefined>;

  constructor(manager: EntityManager, repository: SessionsRepository) {
    this.#sessions = new QueryBatcher(async (tokenHashes) => {
      const found = await repository.findLive(manager, tokenHashes);
      return tokenHashes.map((hash) => found.get(hash.toString('base64url')));
    });
  }

  /** The live session of a token by its hash, looked up after this call. */
  find(tokenHash: Buffer): Promise<LiveSession | undefined> {
    return this.#sessions.load(tokenHash);
  }
}
