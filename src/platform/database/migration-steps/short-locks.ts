import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import { NO_LIMITS } from '#platform/database/session-settings/limits.js';
import { isLostRace, sqlStateOf } from '#platform/database/statements/faults.js';
import { sql } from '#platform/database/statements/sql.js';
import type {
  DataSource,
  EntityManager,
  QueryRunner,
} from '#platform/database/statements/typeorm.js';

/** The SQLSTATE of a statement that has waited for a lock longer than `lock_timeout`. */
const LOCK_TIMEOUT_STATE = '55P03';

/**
 * The longest wait of a statement for a lock, in milliseconds. While an ALTER TABLE waits behind a
 * long transaction, every other statement on the table waits behind the ALTER TABLE. So the ALTER
 * TABLE gives up early, and the other statements go on.
 */
const LOCK_TIMEOUT = 200;

/** The first and the longest pause between two attempts, in milliseconds. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 1_000;

/**
 * The number of failed attempts after which the log says why the migration waits. The line is
 * repeated after each further series of as many attempts.
 */
const LOG_EVERY = 10;

/**
 * Runs a part of a migration in a transaction whose waits for locks are short, and repeats it until
 * it gets the locks. So a client that keeps a lock for long, such as a backup, delays the migration
 * but no other client.
 *
 * @param attempts the number of attempts; without end by default
 * @returns the result of the part; undefined if no attempt got the locks
 */
export async function withShortLocks<Result>(
  manager: EntityManager,
  log: Logger,
  what: string,
  part: (tx: EntityManager) => Promise<Result>,
  attempts = Infinity,
): Promise<Result | undefined> {
  for (let failed = 1; failed <= attempts; failed += 1) {
    try {
      return await manager.transaction(async (tx) => {
        await tx.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT}; SET LOCAL jit = off`);
        return part(tx);
      });
    } catch (error) {
      if (sqlStateOf(error) !== LOCK_TIMEOUT_STATE && !isLostRace(error)) throw error;
    }
    if (failed % LOG_EVERY === 0) {
      log.warn(
        `${what} waits for a lock that another transaction holds, and is tried again. ` +
          `End the long transactions that pg_stat_activity shows, such as a backup or an open psql.`,
      );
    }
    await systemClock.sleep(Math.min(FIRST_PAUSE * failed, LONGEST_PAUSE));
  }
  return undefined;
}

/** The advisory lock that an action needs, and how a process waits for the lock. */
export interface Turn {
  /** The number of the lock, from ADVISORY_LOCKS. */
  readonly key: number;
  /** The line that is logged while another process has the lock. */
  readonly waiting: string;
  /** The milliseconds between two attempts to get the lock. */
  readonly pollEvery: number;
  /** A signal that ends the wait with an `AbortError`. */
  readonly signal?: AbortSignal;
}

/**
 * Runs an action while it has an advisory lock, on one connection without time limits of the server
 * or the role. It polls for the lock and does not wait inside `pg_advisory_lock`. A session that
 * waits there keeps a snapshot open, and CREATE INDEX CONCURRENTLY of another process would wait
 * for the end of that snapshot.
 */
export async function inTurn<Result>(
  dataSource: DataSource,
  log: Logger,
  turn: Turn,
  act: (manager: EntityManager) => Promise<Result>,
): Promise<Result> {
  const runner = dataSource.createQueryRunner();
  try {
    await runner.query(NO_LIMITS);
    await takeLock(runner, log, turn);
    return await act(runner.manager);
  } finally {
    // Releases the lock. If the connection was lost, PostgreSQL has released the lock already, and
    // the error of the lost connection is thrown in any case.
    await runner.query('RESET ALL; SELECT pg_advisory_unlock_all()').catch(() => undefined);
    await runner.release();
  }
}

async function takeLock(runner: QueryRunner, log: Logger, turn: Turn): Promise<void> {
  for (let attempts = 1; ; attempts += 1) {
    const [attempt] = await sql<{ taken: boolean }>(runner.manager)`
      SELECT pg_try_advisory_lock(${turn.key}) AS taken`;
    if (attempt?.taken) return;
    if (attempts === 1) log.log(turn.waiting);
    await systemClock.sleep(turn.pollEvery, turn.signal && { signal: turn.signal });
  }
}
