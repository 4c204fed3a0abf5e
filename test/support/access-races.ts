import type { DataSource } from 'typeorm';
import { untilWaiting } from './lock-waiters.js';

/**
 * The number of the advisory lock at which the statements that issue credentials wait. Any number
 * that the service itself does not lock would do.
 */
const PARKING = 8_472_001;

/**
 * Replaces the SQL function that says if an e-mail address belongs to an organization. Each call
 * first waits while a test has the advisory lock. The statement that issues credentials calls the
 * function after it took its snapshot, and before it locks a row. So a test can commit changes
 * between these.
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
 * Commits a change after the statements that issue credentials took their snapshots, and before
 * they lock a row. Returns the result of `issue`. It locks {@link PARKING}, calls `issue`, waits
 * until the statements wait for that lock, calls `change`, and unlocks.
 *
 * @param statements the number of statements that will wait
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
