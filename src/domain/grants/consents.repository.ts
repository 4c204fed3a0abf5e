import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** The consents of users to clients that registered themselves. */
@Injectable()
export class ConsentsRepository {
  /**
   * Records that a user consents to a client; for a client of another kind it records nothing. The row of the user is locked
   * before that of the client, as everywhere.
   */
  async record(tx: EntityManager, userId: string, clientId: string): Promise<void> {
    await sql(tx)`
      INSERT INTO oauth_consents (user_id, client_id)
      SELECT u.id, c.id FROM users u CROSS JOIN oauth_clients c
      WHERE u.id = ${userId} AND c.id = ${clientId} AND c.kind = 'dynamic'
      ON CONFLICT (user_id, client_id) DO UPDATE SET consented_at = now()`;
    await sql(tx)`
      UPDATE oauth_clients SET consented_at = now()
      WHERE id = ${clientId} AND kind = 'dynamic' AND consented_at IS NULL`;
  }

  /** Tells whether a user consented to a client as it is: a change of its registration voids what came before. */
  async has(tx: EntityManager, userId: string, clientId: string): Promise<boolean> {
    const [found] = await sql<{ client_id: string }>(tx)`
      SELECT o.client_id FROM oauth_consents o JOIN oauth_clients c ON c.id = o.client_id
      WHERE o.user_id = ${userId} AND o.client_id = ${clientId} AND o.consented_at > c.updated_at`;
    return found !== undefined;
  }
}
