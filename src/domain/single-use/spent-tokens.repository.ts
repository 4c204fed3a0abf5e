import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** The ids of single-use tokens that were spent. */
@Injectable()
export class SpentTokensRepository {
  /**
   * Spends a token: true for exactly one caller. The primary key decides, so two replicas cannot both win; a token
   * whose use then fails stays spent.
   */
  async spend(tx: EntityManager, id: string, expiresAt: Date): Promise<boolean> {
    const won = await sql<{ id: string }>(tx)`
      INSERT INTO spent_tokens (id, expires_at) VALUES (${id}, ${expiresAt})
      ON CONFLICT (id) DO NOTHING
      RETURNING id`;
    return won.length === 1;
  }
}
