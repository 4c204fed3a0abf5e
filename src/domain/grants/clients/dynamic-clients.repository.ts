import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { sql } from '#platform/database/statements/sql.js';
import { DYNAMIC_CLIENT_DAYS } from './clients.repository.js';

/** Clients that registered themselves (RFC 7591): the limits over those that no user has consented to, and the consents. */
@Injectable()
export class DynamicClientsRepository {
  /** Waits until no other registration is under way; the lock ends with the transaction. */
  async lockRegistrations(tx: EntityManager): Promise<void> {
    await sql(tx)`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.selfRegistration})`;
  }

  /** Counts the clients that a network has and no user has consented to. A network is an address of IPv4 or a /64 of IPv6. */
  async countOfNetwork(tx: EntityManager, address: string): Promise<number> {
    const [row] = await sql<{ n: number }>(tx)`
      SELECT count(*)::int AS n FROM oauth_clients
      WHERE kind = 'dynamic' AND consented_at IS NULL AND registered_from = network_of(${address}::inet)
        AND last_used_at > now() - make_interval(days => ${DYNAMIC_CLIENT_DAYS})`;
    return row?.n ?? 0;
  }

  /** Records the network that a client registered from. */
  async setOrigin(tx: EntityManager, clientId: string, address: string): Promise<void> {
    await sql(tx)`
      UPDATE oauth_clients SET registered_from = network_of(${address}::inet) WHERE id = ${clientId}`;
  }

  /**
   * Removes the oldest clients that no user has consented to, as many as there are beyond a limit. One that is in use at this
   * moment is passed over: a user may be consenting to it.
   *
   * @returns the ids of the removed clients
   */
  async trim(tx: EntityManager, limit: number): Promise<string[]> {
    const removed = await sql<{ id: string }>(tx)`
      WITH beyond AS (
        SELECT greatest(count(*) - ${limit}::bigint, 0) AS n FROM oauth_clients
        WHERE kind = 'dynamic' AND consented_at IS NULL
      ), oldest AS MATERIALIZED (
        SELECT id FROM oauth_clients WHERE kind = 'dynamic' AND consented_at IS NULL
        ORDER BY created_at, id LIMIT (SELECT n FROM beyond) FOR UPDATE SKIP LOCKED
      )
      DELETE FROM oauth_clients c USING oldest o WHERE c.id = o.id RETURNING c.id`;
    return removed.map(({ id }) => id);
  }

  /**
   * Records that a user consents to a client; for a client of another kind it records nothing. The row of the user is locked
   * before that of the client, as everywhere.
   */
  async recordConsent(tx: EntityManager, userId: string, clientId: string): Promise<void> {
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
  async hasConsent(tx: EntityManager, userId: string, clientId: string): Promise<boolean> {
    const [found] = await sql<{ client_id: string }>(tx)`
      SELECT o.client_id FROM oauth_consents o JOIN oauth_clients c ON c.id = o.client_id
      WHERE o.user_id = ${userId} AND o.client_id = ${clientId} AND o.consented_at > c.updated_at`;
    return found !== undefined;
  }
}
