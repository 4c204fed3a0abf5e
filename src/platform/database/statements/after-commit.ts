import type { DataSource, EntityManager, QueryRunner } from './typeorm.js';

/**
 * A function that waits for the commit of a transaction. `depth` is the depth of the transaction or
 * savepoint in which it was added, as {@link depthOf} counts it.
 */
interface WaitingAct {
  readonly act: () => void;
  readonly depth: number;
}

/**
 * The key under which the waiting functions are stored in the data of their connection's query
 * runner.
 */
const WAITING = 'svc acts after commit';

/**
 * The data sources to which `watch` has already added its subscriber, so that it adds only one to
 * each.
 */
const watched = new WeakSet<object>();

/**
 * Calls a function once a transaction has committed. The function is never called if the
 * transaction or its savepoint is rolled back, or if the process ends. So use it only to shorten a
 * wait, and store work that must happen in a table.
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
 * Drops the waiting functions of a transaction or savepoint in which a statement failed. PostgreSQL
 * rolls that transaction or savepoint back, and yet answers a COMMIT without an error, so that the
 * functions would be called.
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
        // When a savepoint ends, its waiting functions belong to the transaction around it.
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
 * Returns the number of open transactions on a connection: 1 in a transaction, 2 in its savepoint,
 * and so on.
 */
function depthOf(runner: QueryRunner): number {
  if (!('transactionDepth' in runner) || typeof runner.transactionDepth !== 'number') {
    throw new TypeError('The runner has no depth of the typeorm that this project locks');
  }
  return runner.transactionDepth;
}
