import type { Adapter, AdapterPayload } from 'oidc-provider';
import { systemClock } from '../clock.js';

/**
 * Stores the records of one model (kind of record) of oidc-provider in memory, until the process
 * ends.
 */
export class MemoryStore implements Adapter {
  readonly #rows = new Map<string, AdapterPayload>();

  async upsert(id: string, payload: AdapterPayload, expiresIn?: number): Promise<void> {
    this.#rows.set(id, payload);
    if (expiresIn) setTimeout(() => this.#rows.delete(id), expiresIn * 1000).unref();
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    return this.#rows.get(id);
  }

  async consume(id: string): Promise<void> {
    const row = this.#rows.get(id);
    if (row) row.consumed = systemClock.seconds();
  }

  async destroy(id: string): Promise<void> {
    this.#rows.delete(id);
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    for (const [id, row] of this.#rows) if (row.grantId === grantId) this.#rows.delete(id);
  }

  async findByUid(): Promise<undefined> {
    // Only sessions are looked up by this method, and they are not stored.
  }

  async findByUserCode(): Promise<undefined> {
    // Device codes are looked up by this method, and the demo's provider has none.
  }
}

/** Stores no session of oidc-provider, so that every sign-in asks for a user again. */
export class NoSessionStore extends MemoryStore {
  override async upsert(): Promise<void> {
    // With a stored session, the next sign-in would not ask for a user.
  }
}
