import { afterCommit } from './after-commit.js';
import type { DataSource, EntityManager } from './typeorm.js';

/** A function that gets the ids of new audit rows after their commit has returned. */
type Listener = (ids: readonly string[]) => void;

const listeners = new WeakMap<DataSource, Listener[]>();

/**
 * The column in which a statement returns the ids of the audit rows that it wrote. It has one id,
 * an array of ids, or null for none.
 */
export interface RecordedColumn {
  recorded?: string | readonly string[] | null;
}

/** Adds a listener of a data source for the ids of committed audit rows. */
export function onRecorded(dataSource: DataSource, listener: Listener): void {
  listeners.set(dataSource, [...(listeners.get(dataSource) ?? []), listener]);
}

/**
 * Passes the ids of new audit rows to the listeners of the data source, after their commit has
 * returned.
 */
export function noteRecorded(tx: EntityManager, ids: readonly string[]): void {
  const all = listeners.get(tx.dataSource);
  if (all && ids.length > 0) afterCommit(tx, () => all.forEach((listener) => listener(ids)));
}

/**
 * Removes the column `recorded` from the rows of a statement. Its values, the ids of new audit
 * rows, go to the listeners of the data source after the commit.
 *
 * @throws TypeError if the rows lack the column, because the process would then not know which rows
 *   it has committed
 */
export function takeRecorded(tx: EntityManager, rows: readonly RecordedColumn[]): void {
  const ids: string[] = [];
  for (const row of rows) {
    const { recorded } = row;
    if (recorded === undefined) throw new TypeError('the statement does not return `recorded`');
    if (typeof recorded === 'string') ids.push(recorded);
    else if (recorded) ids.push(...recorded);
    delete row.recorded;
  }
  noteRecorded(tx, ids);
}
