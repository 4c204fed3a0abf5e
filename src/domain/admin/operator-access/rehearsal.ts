import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';

/** The error that rolls back a transaction after its outcome is known. */
class Rehearsed<Outcome> extends Error {
  constructor(readonly outcome: Outcome) {
    super('rehearsed');
  }
}

/**
 * Returns the outcome of an act without the act: its transaction is rolled back. It throws as the
 * act does.
 */
export async function rehearsed<Outcome>(
  dataSource: DataSource,
  act: (tx: EntityManager) => Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await dataSource.transaction(async (tx) => {
      throw new Rehearsed(await act(tx));
    });
  } catch (error) {
    if (error instanceof Rehearsed) return error.outcome as Outcome;
    throw error;
  }
}
