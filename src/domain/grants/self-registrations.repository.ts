import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-locks.js';
import { sql } from '#platform/database/statements/sql.js';
import { DYNAMIC_CLIENT_DAYS } from './clients.repository.js';

/** The limits of clients that register themselves, over those that no user has consented to. */
@Injectable()
export class SelfRegistrationsRepository {
  /** Waits until no other registration is under way; the lock ends with the transaction. */
  async lock(tx: EntityManager): Promise<void> {
    await sql(tx)`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.selfRegistration})`;
  }

  /** Counts the clients that a network has and no user has consented to. A network is an address of IPv4 or a /64 of IPv6. */
  async count(tx: EntityManager, address: string): Promise<number> {
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
}
