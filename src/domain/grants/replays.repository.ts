import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/sql.js';

/** The ids of assertions and proofs that came once (RFC 7523 §3, RFC 9449 §11.1). */
@Injectable()
export class ReplaysRepository {
  /**
   * Spends an id: true for exactly one caller until it is forgotten. One statement, so that of two replicas one wins.
   *
   * @param expiresAt when it may be forgotten: not before what it names could not be accepted any more
   */
  async spend(tx: EntityManager, issuer: string, jti: string, expiresAt: Date): Promise<boolean> {
    const key = createHash('sha256')
      .update(JSON.stringify([issuer, jti]))
      .digest();
    const won = await sql<{ key: Buffer }>(tx)`
      INSERT INTO oauth_replays (key, expires_at) VALUES (${key}, ${expiresAt})
      ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_replays.expires_at < now()
      RETURNING key`;
    return won.length === 1;
  }
}
