import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** An id that is spent. */
export interface Spend {
  readonly issuer: string;
  readonly jti: string;
  /** When it may be forgotten: not before what it names could not be accepted any more. */
  readonly expiresAt: Date;
}

/** The ids of assertions and proofs that came once (RFC 7523 §3, RFC 9449 §11.1). */
@Injectable()
export class ReplaysRepository {
  /**
   * Spends some ids: true for exactly one caller each until it is forgotten. One statement, so that of two replicas one wins;
   * of the same id twice in one statement the first wins, which is decided before it is sent. The keys are sent in their
   * order, so that two statements that wait for one another never do so in a circle.
   */
  async spend(tx: EntityManager, spends: readonly Spend[]): Promise<boolean[]> {
    const keys = spends.map(({ issuer, jti }) =>
      hash('sha256', JSON.stringify([issuer, jti]), 'hex'),
    );
    const firsts = new Map<string, Date>();
    for (const [index, { expiresAt }] of spends.entries()) {
      const key = keys[index] ?? '';
      if (!firsts.has(key)) firsts.set(key, expiresAt);
    }
    const sent = [...firsts].toSorted(([one], [other]) => (one < other ? -1 : 1));
    const won = await sql<{ key: string }>(tx)`
      INSERT INTO oauth_replays (key, expires_at)
      SELECT decode(k.key, 'hex'), k.expires_at
      FROM unnest(${sent.map(([key]) => key)}::text[], ${sent.map(([, expiresAt]) => expiresAt)}::timestamptz[])
        AS k (key, expires_at)
      ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_replays.expires_at < now()
      RETURNING encode(key, 'hex') AS key`;
    const winners = new Set(won.map(({ key }) => key));
    return keys.map((key) => winners.delete(key));
  }
}
