import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** An error that is thrown only to roll back a transaction after its result is known. */
class Rehearsed<Outcome> extends Error {
  constructor(readonly outcome: Outcome) {
    super('rehearsed');
  }
}

/**
 * Returns the result that `act` would have. It runs `act` in a transaction and then rolls the
 * transaction back. An error of `act` is thrown.
 */
export async function rehearsed<Outcome>(
  dataSource: DataSource,
  act: (tx: EntityManager) => Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await withTransactionRetry(dataSource, async (tx) => {
      throw new Rehearsed(await act(tx));
    });
  } catch (error) {
    if (error instanceof Rehearsed) return error.outcome as Outcome;
    throw error;
  }
}
