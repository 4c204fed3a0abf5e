import type { DataSource } from 'typeorm';
import { expect } from 'vitest';
import { count } from './rows.js';

/** Counts the statements of this database that wait for a lock. */
export function lockWaiters(dataSource: DataSource): Promise<number> {
  return count(
    dataSource,
    `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
}

/** Waits until exactly `statements` statements in this database wait for a lock. */
export async function untilWaiting(dataSource: DataSource, statements: number): Promise<void> {
  await expect.poll(() => lockWaiters(dataSource)).toBe(statements);
}
