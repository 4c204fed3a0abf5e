import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DYNAMIC_CLIENT_DAYS } from '#domain/grants/clients.repository.js';
import { LOCK_MINUTES } from '#domain/grants/device-codes.repository.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-locks.js';
import { fixedSql, sql } from '#platform/database/statements/sql.js';

/** Days for which audit events of a class are kept. Those of class `admin` are kept for ever. */
export interface Retention {
  readonly auth: number;
  readonly oauth: number;
}

/** A kind of rows that nobody needs any more. All of it is text of ours: nobody from outside has a say in it. */
interface Expired {
  readonly table: string;
  readonly key: readonly string[];
  /** Which of them; `$2` stands for the days for which they are kept, where they are audit events. */
  readonly where: string;
  /** Which go first, where an index has them in that order. */
  readonly by?: string;
  readonly kept?: keyof Retention;
}

const PAST = { where: 'expires_at < now()', by: 'expires_at' };

/** The class is no parameter of the world's: `admin` has no way to it. */
function events(kept: keyof Retention): Expired {
  return {
    table: 'audit_events',
    key: ['id'],
    where: `class = '${kept}' AND class <> 'admin' AND created_at < now() - make_interval(days => $2)`,
    by: 'created_at',
    kept,
  };
}

/** What is deleted, by name. */
const EXPIRED = {
  sessions: { table: 'sessions', key: ['id'], ...PAST },
  grants: { table: 'oauth_grants', key: ['id'], ...PAST },
  artifacts: { table: 'oauth_artifacts', key: ['model', 'id'], ...PAST },
  replays: { table: 'oauth_replays', key: ['key'], ...PAST },
  /** Those that no more lock anybody out. */
  userCodeTries: {
    table: 'oauth_user_code_tries',
    key: ['user_id'],
    where: `last_at < now() - make_interval(mins => ${LOCK_MINUTES})`,
  },
  clientSecrets: { table: 'oauth_client_secrets', key: ['id'], where: PAST.where },
  /** Those that registered themselves and were not used for so long that they may not act any more. */
  dynamicClients: {
    table: 'oauth_clients',
    key: ['id'],
    where: `kind = 'dynamic' AND last_used_at < now() - make_interval(days => ${DYNAMIC_CLIENT_DAYS})`,
    by: 'last_used_at',
  },
  spentTokens: { table: 'spent_tokens', key: ['id'], ...PAST },
  /** Buckets out of debt, which are as good as new ones once their bookings have lapsed: seconds later, in every tier. */
  rateLimits: {
    table: 'rate_limits',
    key: ['bucket'],
    where: "tat < now() AND (slots = '{}' OR tat < now() - interval '1 minute')",
  },
  authEvents: events('auth'),
  oauthEvents: events('oauth'),
} as const satisfies Record<string, Expired>;

/** A kind of rows that are cleaned up. */
export type ExpiredKind = keyof typeof EXPIRED;

/** Every kind, in the order in which they are cleaned up: what hangs on others after them. */
export const EXPIRED_KINDS = Object.keys(EXPIRED) as readonly ExpiredKind[];

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
   * Deletes rows of a kind, so many at once. Whoever is using a row at this moment keeps it until the next time: nobody waits
   * for the clean-up, and it for nobody but for what hangs on a row.
   *
   * @returns how many there were
   */
  async delete(
    tx: EntityManager,
    kind: ExpiredKind,
    most: number,
    retention: Retention,
  ): Promise<number> {
    const { table, key, where, by, kept }: Expired = EXPIRED[kind];
    const [row] = await fixedSql<{ n: number }>(
      tx,
      `WITH expired AS MATERIALIZED (
         SELECT ${key.join(', ')} FROM ${table} WHERE ${where}${by ? ` ORDER BY ${by}` : ''} LIMIT $1 FOR UPDATE SKIP LOCKED
       ), gone AS (
         DELETE FROM ${table} t USING expired e WHERE ${key.map((column) => `t.${column} = e.${column}`).join(' AND ')}
         RETURNING 1
       )
       SELECT count(*)::int AS n FROM gone`,
      kept ? [most, retention[kept]] : [most],
    );
    return row?.n ?? 0;
  }
}
