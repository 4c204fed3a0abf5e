import type { DataSource, EntityManager } from './typeorm.js';
import { systemClock } from '#platform/clock/clock.js';
import { isLostRace } from './faults.js';

/** The largest number of attempts, and the longest pause between two of them in milliseconds. */
const MOST_RUNS = 4;
const LONGEST_WAIT = 50;

/**
 * Runs a transaction, and repeats it after a deadlock or a serialization failure, which rolled it
 * back. Use it for changes that must succeed despite concurrent transactions. If `work` also has
 * effects outside of the transaction, each attempt repeats them.
 *
 * @throws the error of `work`, or the fault of the last attempt
 */
export async function withTransactionRetry<Result>(
  dataSource: DataSource,
  work: (tx: EntityManager) => Promise<Result>,
): Promise<Result> {
  for (let run = 1; ; run += 1) {
    try {
      return await dataSource.transaction(work);
    } catch (error) {
      if (run === MOST_RUNS || !isLostRace(error)) throw error;
      await systemClock.sleep(Math.random() * LONGEST_WAIT);
    }
  }
}
