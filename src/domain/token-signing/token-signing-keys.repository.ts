import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** ES256 or RS256. */
export type KeyKind = 'ec' | 'rsa';

/** Token-signing keys that the operator did not set: kept sealed. */
@Injectable()
export class TokenSigningKeysRepository {
  /** The sealed key of a kind, if one was made. */
  async find(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
    const [row] = await sql<{ sealed: string }>(tx)`
      SELECT sealed FROM token_signing_keys WHERE kind = ${kind}`;
    return row?.sealed;
  }

  /** Records a key where there is none; returns the one on record: of two replicas that start at once, the faster one's. */
  async record(tx: EntityManager, kind: KeyKind, sealed: string): Promise<string> {
    const [row] = await sql<{ sealed: string }>(tx)`
      INSERT INTO token_signing_keys (kind, sealed) VALUES (${kind}, ${sealed})
      ON CONFLICT (kind) DO UPDATE SET kind = EXCLUDED.kind
      RETURNING sealed`;
    if (!row) throw new Error('INSERT returned no row');
    return row.sealed;
  }

  /** Seals a key anew, if it is still the one that was opened. */
  async reseal(tx: EntityManager, kind: KeyKind, from: string, to: string): Promise<void> {
    await sql(tx)`
      UPDATE token_signing_keys SET sealed = ${to} WHERE kind = ${kind} AND sealed = ${from}`;
  }
}
