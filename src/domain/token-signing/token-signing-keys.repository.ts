import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/** The kind of a key: `ec` for ES256, `rsa` for RS256. */
export type KeyKind = 'ec' | 'rsa';

/** The generated token-signing keys, which are stored sealed. Keys from the configuration are not stored. */
@Injectable()
export class TokenSigningKeysRepository {
  /** Finds the sealed key of a kind. */
  async find(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
    const [row] = await sql<{ sealed: string }>(tx)`
      SELECT sealed FROM token_signing_keys WHERE kind = ${kind}`;
    return row?.sealed;
  }

  /** Stores a key unless one is stored, and returns the stored key. Of two replicas that start at once, the first one stores. */
  async record(tx: EntityManager, kind: KeyKind, sealed: string): Promise<string> {
    const [row] = await sql<{ sealed: string }>(tx)`
      INSERT INTO token_signing_keys (kind, sealed) VALUES (${kind}, ${sealed})
      ON CONFLICT (kind) DO UPDATE SET kind = EXCLUDED.kind
      RETURNING sealed`;
    if (!row) throw new Error('INSERT returned no row');
    return row.sealed;
  }

  /** Replaces the sealed text of a key, unless another replica has replaced it already. */
  async reseal(tx: EntityManager, kind: KeyKind, from: string, to: string): Promise<void> {
    await sql(tx)`
      UPDATE token_signing_keys SET sealed = ${to} WHERE kind = ${kind} AND sealed = ${from}`;
  }
}
