import type { DataSource, EntityManager } from './typeorm.js';
import { systemClock } from '#platform/clock/clock.js';
import { isLostRace } from './faults.js';

/**
 * The largest number of attempts, and the longest pause between two of them in milliseconds. Twenty
 * transactions that all change one row, at the isolation level SERIALIZABLE, need about ten
 * attempts, so that sixteen are enough.
 */
const MOST_RUNS = 16;
const LONGEST_WAIT = 50;

/**
 * Runs a transaction, and repeats it after a deadlock or a serialization failure, which rolled it
 * back (manual of PostgreSQL, section 13.5). Every transaction of the service except those of
 * migrations runs by this function. If `work` also has effects outside of the transaction, each
 * attempt repeats them.
 *
 * @param parent the data source or its manager. If it is the manager of an open transaction, `work`
 *   runs only once, in a savepoint, because only the whole transaction can be repeated
 * @throws the error of `work`, or the fault of the last attempt
 */
export function withTransactionRetry<Result>(
  parent: DataSource | EntityManager,
  work: (tx: EntityManager) => Promise<Result>,
): Promise<Result> {
  const isOpen = 'queryRunner' in parent && parent.queryRunner?.isTransactionActive;
  if (isOpen) return parent.transaction(work);
  return repeatingLostRaces(() => parent.transaction(work));
}

/**
 * Runs an attempt, and repeats it after a deadlock or a serialization failure. PostgreSQL has then
 * rolled back everything that the attempt did.
 *
 * @param attempt a whole transaction, or one statement that stands alone
 * @throws the error of an attempt that is not repeated, or that of the last attempt
 */
export async function repeatingLostRaces<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let run = 1; ; run += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (run === MOST_RUNS || !isLostRace(error)) throw error;
      await systemClock.sleep(Math.random() * LONGEST_WAIT);
    }
  }
}
