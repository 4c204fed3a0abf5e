import type { DataSource } from 'typeorm';
import { untilWaiting } from './lock-waiters.js';

/**
 * The number of the advisory lock at which the statements that issue credentials wait. Any number
 * that the service itself does not lock would do.
 */
const PARKING = 8_472_001;

/**
 * Replaces the SQL function that decides if an e-mail address belongs to an organization. While a
 * test has the advisory lock, each call of the function waits for the lock. A statement that issues
 * credentials, for one request or for several, has its snapshot at that time, but no row lock yet.
 * While the lock is free, the function works as usual.
 */
export async function plantParking(dataSource: DataSource): Promise<void> {
  await dataSource.query(`
    CREATE OR REPLACE FUNCTION address_ownership(org_id uuid, email text) RETURNS TABLE (is_own boolean)
    LANGUAGE plpgsql VOLATILE ROWS 1 AS $$
    #variable_conflict use_column
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(${PARKING});
      RETURN QUERY SELECT
        (SELECT d.org_id FROM organization_domains d
         WHERE d.domain = split_part($2, '@', -1) AND d.verified_at IS NOT NULL) IS NOT DISTINCT FROM $1
        AND ($1 IS NOT NULL OR NOT EXISTS (SELECT FROM dns_proven_domains p WHERE p.domain = split_part($2, '@', -1)));
    END $$`);
}

/**
 * Commits a change while a statement that issues a credential has its snapshot, but has locked no
 * row yet. Returns the result of `issue`. It takes the lock of {@link plantParking}, calls `issue`,
 * waits until the statements wait for the lock, calls `change`, and releases the lock.
 *
 * @param statements the number of issuing statements that wait
 */
export async function issueAcross<Result>(
  dataSource: DataSource,
  issue: () => Promise<Result>,
  change: () => Promise<unknown>,
  statements = 1,
): Promise<Result> {
  const holder = dataSource.createQueryRunner();
  await holder.connect();
  try {
    await holder.query(`SELECT pg_advisory_lock(${PARKING})`);
    const issuing = issue();
    issuing.catch(() => {});
    await untilWaiting(dataSource, statements);
    await change();
    await holder.query(`SELECT pg_advisory_unlock(${PARKING})`);
    return await issuing;
  } finally {
    await holder.query('SELECT pg_advisory_unlock_all()');
    await holder.release();
  }
}
