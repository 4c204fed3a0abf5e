import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { StoredArtifact } from './artifact.js';
import { ArtifactsRepository, keyText, type ArtifactKey } from './artifacts.repository.js';

interface Batch {
  readonly keys: ArtifactKey[];
  readonly found: Promise<Map<string, StoredArtifact>>;
}

/**
 * Looks artifacts up, those of one turn of the event loop by one statement: the library asks for a token under every kind it
 * may be of, all at once. No cache: nothing is kept of an answer, and each look-up sees what was committed before it asked.
 */
@Injectable()
export class ArtifactLookUps {
  #gathering: Batch | undefined;

  constructor(
    private readonly manager: EntityManager,
    private readonly artifacts: ArtifactsRepository,
  ) {}

  /** What is there under a key, looked up after this call. */
  async find(key: ArtifactKey): Promise<StoredArtifact | undefined> {
    this.#gathering ??= this.#open();
    const { keys, found } = this.#gathering;
    keys.push(key);
    return (await found).get(keyText(key));
  }

  #open(): Batch {
    const keys: ArtifactKey[] = [];
    const closed = new Promise((resolve) => {
      setImmediate(resolve);
    });
    const found = closed.then(() => {
      this.#gathering = undefined;
      return this.artifacts.find(this.manager, keys);
    });
    return { keys, found };
  }
}
