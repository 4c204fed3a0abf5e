import type { DataSource, EntityManager, QueryRunner } from './typeorm.js';

/**
 * An act that waits for the commit of a transaction, and the depth of savepoints in which it was
 * added.
 */
interface WaitingAct {
  readonly act: () => void;
  readonly depth: number;
}

/** The key of the waiting acts in the data of the query runner of their connection. */
const WAITING = 'svc acts after commit';

/** The data sources whose commits are watched. */
const watched = new WeakSet<object>();

/**
 * Calls a function once a transaction has committed. It is never called if the transaction or its
 * savepoint is rolled back, or if the process ends. So use it only to shorten a wait, and store
 * work that must happen in a table.
 *
 * @param tx the transaction; outside of a transaction the function is called at once, because each
 *   statement is already committed
 */
export function afterCommit(tx: EntityManager, act: () => void): void {
  const { queryRunner: runner } = tx;
  if (!runner?.isTransactionActive) {
    act();
    return;
  }
  watch(runner.dataSource);
  setActs(runner, [...actsOf(runner), { act, depth: depthOf(runner) }]);
}

/**
 * Drops the waiting acts of a transaction or savepoint in which a statement failed: PostgreSQL
 * rolls back the transaction or its innermost savepoint, and answers a COMMIT without an error.
 */
export function forgetFailed(runner: QueryRunner): void {
  if (runner.isTransactionActive) keepBelow(runner, depthOf(runner));
}

function watch(dataSource: DataSource): void {
  if (watched.has(dataSource)) return;
  watched.add(dataSource);
  dataSource.subscribers.push({
    afterTransactionCommit({ queryRunner: runner }) {
      const acts = actsOf(runner);
      if (acts.length === 0) return;
      if (runner.isTransactionActive) {
        // When a savepoint ends, its acts belong to the transaction around it.
        const most = depthOf(runner);
        setActs(
          runner,
          acts.map(({ act, depth }) => ({ act, depth: Math.min(depth, most) })),
        );
        return;
      }
      setActs(runner, []);
      acts.forEach(({ act }) => act());
    },
    afterTransactionRollback({ queryRunner: runner }) {
      keepBelow(runner, runner.isTransactionActive ? depthOf(runner) + 1 : 0);
    },
  });
}

function keepBelow(runner: QueryRunner, depth: number): void {
  const acts = actsOf(runner);
  if (acts.length === 0) return;
  setActs(
    runner,
    acts.filter((waiting) => waiting.depth < depth),
  );
}

function actsOf(runner: QueryRunner): readonly WaitingAct[] {
  return (runner.data as Record<string, WaitingAct[] | undefined>)[WAITING] ?? [];
}

function setActs(runner: QueryRunner, acts: readonly WaitingAct[]): void {
  const data = runner.data as Record<string, readonly WaitingAct[]>;
  if (acts.length === 0) delete data[WAITING];
  else data[WAITING] = acts;
}

/**
 * Returns the number of open transactions of a runner: 1 in a transaction, 2 in its savepoint, and
 * so on.
 */
function depthOf(runner: QueryRunner): number {
  if (!('transactionDepth' in runner) || typeof runner.transactionDepth !== 'number') {
    throw new TypeError('The runner has no depth of the typeorm that this project locks');
  }
  return runner.transactionDepth;
}
