import type { EntityManager, QueryRunner } from './typeorm.js';

/** The acts that wait for the commit of a transaction, in the data of its connection's runner. */
const WAITING = 'svc acts after commit';

/** The data sources whose commits are watched. */
const watched = new WeakSet<object>();

/**
 * Calls a function once a transaction has committed; never when it is rolled back or the process ends. Use it to shorten a wait: what
 * must happen is in a table.
 *
 * @param tx a manager outside of a transaction commits each statement, so that the function is called at once
 */
export function afterCommit(tx: EntityManager, act: () => void): void {
  const { queryRunner: runner } = tx;
  if (!runner?.isTransactionActive) {
    act();
    return;
  }
  watch(runner);
  const data = runner.data as Record<string, (() => void)[]>;
  (data[WAITING] ??= []).push(act);
}

function watch({ dataSource }: QueryRunner): void {
  if (watched.has(dataSource)) return;
  watched.add(dataSource);
  dataSource.subscribers.push({
    afterTransactionCommit({ queryRunner }) {
      if (queryRunner.isTransactionActive) return; // the end of a savepoint
      const data = queryRunner.data as Record<string, (() => void)[]>;
      const acts = data[WAITING] ?? [];
      delete data[WAITING];
      acts.forEach((act) => act());
    },
    afterTransactionRollback({ queryRunner }) {
      if (!queryRunner.isTransactionActive) {
        delete (queryRunner.data as Record<string, unknown>)[WAITING];
      }
    },
  });
}
