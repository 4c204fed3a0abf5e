import type { DataSource } from 'typeorm';
import { untilWaiting } from './lock-waiters.js';

/** The number of the advisory lock at which issuing statements wait. */
const PARKING = 8_472_001;

/**
 * Makes every statement that asks who owns an e-mail address wait at an advisory lock, as long as a
 * test has the lock. An issuing statement then has its snapshot and no row lock yet. So a statement
 * for several requests, which waits for no row lock, waits here as well. Without the lock the
 * function answers as before.
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
 * Starts to issue a credential, and lets the statement wait after its snapshot. Meanwhile it
 * commits a change, and then lets the statement go on. Returns the result of the issuing.
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
