import type { Adapter, AdapterPayload } from 'oidc-provider';

/** Keeps one model of oidc-provider in memory: enough for an identity provider that lives as long as the demo. */
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
    if (row) row.consumed = Math.floor(Date.now() / 1000);
  }

  async destroy(id: string): Promise<void> {
    this.#rows.delete(id);
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    for (const [id, row] of this.#rows) if (row.grantId === grantId) this.#rows.delete(id);
  }

  async findByUid(): Promise<undefined> {
    // Asked of sessions alone, which are forgotten.
  }

  async findByUserCode(): Promise<undefined> {
    // No device flow here.
  }
}

/** Forgets what it is given: the store of sessions, so that every sign-in names its person anew. */
export class ForgetfulStore extends MemoryStore {
  override async upsert(): Promise<void> {
    // Nothing to keep.
  }
}
