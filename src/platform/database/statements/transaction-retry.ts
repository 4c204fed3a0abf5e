import type { DataSource, EntityManager } from 'typeorm';
import { systemClock } from '#platform/clock/clock.js';
import { isLostRace } from './faults.js';

/** How often a transaction is run, and the most milliseconds it waits in between. */
const MOST_RUNS = 4;
const LONGEST_WAIT = 50;

/**
 * Runs a transaction, and runs it anew when it lost a race (deadlock, serialization): it has left nothing behind then. For acts
 * that must take effect, whoever else acts. What `work` does outside of the transaction it does each time.
 *
 * @throws whatever `work` throws, and the fault of a race that was lost every time
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
