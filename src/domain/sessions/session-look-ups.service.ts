import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { LiveSession } from './session.js';
import { SessionsRepository } from './sessions.repository.js';

interface Batch {
  readonly tokenHashes: Buffer[];
  readonly found: Promise<Map<string, LiveSession>>;
}

/**
 * Looks sessions up, those of one turn of the event loop by one statement. It is no cache: the statement begins after the
 * last of its look-ups was asked for, and nothing is kept of its answer, so each sees what was committed before it
 * asked. Under load it saves a round trip to the database for most requests.
 */
@Injectable()
export class SessionLookUps {
  #gathering: Batch | undefined;

  constructor(
    private readonly manager: EntityManager,
    private readonly repository: SessionsRepository,
  ) {}

  /** The live session of a token by its hash, looked up after this call. */
  async find(tokenHash: Buffer): Promise<LiveSession | undefined> {
    this.#gathering ??= this.#open();
    const { tokenHashes, found } = this.#gathering;
    tokenHashes.push(tokenHash);
    return (await found).get(tokenHash.toString('base64url'));
  }

  #open(): Batch {
    const tokenHashes: Buffer[] = [];
    const closed = new Promise((resolve) => {
      setImmediate(resolve);
    });
    const found = closed.then(() => {
      this.#gathering = undefined;
      return this.repository.findLive(this.manager, tokenHashes);
    });
    return { tokenHashes, found };
  }
}
