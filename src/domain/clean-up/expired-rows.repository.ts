import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DYNAMIC_CLIENT_DAYS } from '#domain/grants/clients.repository.js';
import { LOCK_MINUTES } from '#domain/grants/device-codes.repository.js';
import { ADVISORY_LOCKS } from '#platform/database/advisory-locks.js';
import { sql } from '#platform/database/sql.js';

/** Days for which audit events of a class are kept. Those of class `admin` are kept for ever. */
export interface Retention {
  readonly auth: number;
  readonly oauth: number;
}

/** One kind of rows that nobody needs any more: deletes as many at once, and says how many there were. */
type Deletion = (tx: EntityManager, most: number, retention: Retention) => Promise<number>;

/**
 * What is deleted, by name. Whoever is using a row at this moment keeps it until the next time: nobody waits for the
 * clean-up, and it for nobody but for what hangs on a row.
 */
const DELETIONS = {
  async sessions(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT id FROM sessions WHERE expires_at < now() ORDER BY expires_at LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM sessions t USING expired e WHERE t.id = e.id RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  async grants(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT id FROM oauth_grants WHERE expires_at < now() ORDER BY expires_at LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM oauth_grants t USING expired e WHERE t.id = e.id RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  async artifacts(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT model, id FROM oauth_artifacts
          WHERE expires_at < now() ORDER BY expires_at LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM oauth_artifacts t USING expired e WHERE t.model = e.model AND t.id = e.id RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  async replays(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT key FROM oauth_replays WHERE expires_at < now() ORDER BY expires_at LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM oauth_replays t USING expired e WHERE t.key = e.key RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  /** Those that no more lock anybody out. */
  async userCodeTries(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT user_id FROM oauth_user_code_tries
          WHERE last_at < now() - make_interval(mins => ${LOCK_MINUTES}) LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM oauth_user_code_tries t USING expired e WHERE t.user_id = e.user_id RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  async clientSecrets(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT id FROM oauth_client_secrets WHERE expires_at < now() LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM oauth_client_secrets t USING expired e WHERE t.id = e.id RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  /** Those that registered themselves and were not used for so long that they may not act any more. */
  async dynamicClients(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT id FROM oauth_clients
          WHERE kind = 'dynamic' AND last_used_at < now() - make_interval(days => ${DYNAMIC_CLIENT_DAYS})
          ORDER BY last_used_at LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM oauth_clients t USING expired e WHERE t.id = e.id RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  async spentTokens(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT id FROM spent_tokens WHERE expires_at < now() ORDER BY expires_at LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM spent_tokens t USING expired e WHERE t.id = e.id RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  /** Buckets out of debt, which are as good as new ones. */
  async rateLimits(tx, most) {
    return deleted(
      await sql<Deleted>(tx)`
        WITH expired AS MATERIALIZED (
          SELECT bucket FROM rate_limits WHERE tat < now() LIMIT ${most} FOR UPDATE SKIP LOCKED
        ), gone AS (
          DELETE FROM rate_limits t USING expired e WHERE t.bucket = e.bucket RETURNING 1
        )
        SELECT count(*)::int AS n FROM gone`,
    );
  },
  async authEvents(tx, most, { auth }) {
    return deleteEvents(tx, 'auth', auth, most);
  },
  async oauthEvents(tx, most, { oauth }) {
    return deleteEvents(tx, 'oauth', oauth, most);
  },
} as const satisfies Record<string, Deletion>;

/** A kind of rows that are cleaned up. */
export type ExpiredKind = keyof typeof DELETIONS;

/** Every kind, in the order in which they are cleaned up: what hangs on others after them. */
export const EXPIRED_KINDS = Object.keys(DELETIONS) as readonly ExpiredKind[];

interface Deleted {
  n: number;
}

/** Rows that have expired: refused by every statement that reads them, and deleted here. */
@Injectable()
export class ExpiredRowsRepository {
  /**
   * Takes the turn of cleaning up, unless another process has it: false then. It belongs to the connection, and ends with
   * it at the latest.
   *
   * @param tx of one connection, which is to end the turn, too
   */
  async takeTurn(tx: EntityManager): Promise<boolean> {
    const [row] = await sql<{ taken: boolean }>(tx)`
      SELECT pg_try_advisory_lock(${ADVISORY_LOCKS.cleanUp}) AS taken`;
    return row?.taken ?? false;
  }

  /** Ends the turn that this connection has. */
  async endTurn(tx: EntityManager): Promise<void> {
    await sql(tx)`SELECT pg_advisory_unlock(${ADVISORY_LOCKS.cleanUp})`;
  }

  /**
   * Deletes rows of a kind, so many at once.
   *
   * @returns how many there were
   */
  delete(
    tx: EntityManager,
    kind: ExpiredKind,
    most: number,
    retention: Retention,
  ): Promise<number> {
    return DELETIONS[kind](tx, most, retention);
  }
}

/** The class is no parameter of the world's: `admin` has no way to it. */
async function deleteEvents(
  tx: EntityManager,
  kind: keyof Retention,
  days: number,
  most: number,
): Promise<number> {
  return deleted(
    await sql<Deleted>(tx)`
      WITH expired AS MATERIALIZED (
        SELECT id FROM audit_events
        WHERE class = ${kind} AND class <> 'admin' AND created_at < now() - make_interval(days => ${days})
        ORDER BY created_at LIMIT ${most} FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM audit_events t USING expired e WHERE t.id = e.id RETURNING 1
      )
      SELECT count(*)::int AS n FROM gone`,
  );
}

function deleted([row]: readonly Deleted[]): number {
  return row?.n ?? 0;
}
