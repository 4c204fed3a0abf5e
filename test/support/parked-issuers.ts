import type { DataSource } from 'typeorm';
import { untilWaiting } from './lock-waiters.js';

/**
 * The number of the advisory lock of {@link ParkedIssuers}. It must be a number that the service
 * itself does not lock.
 */
const GATE = 14_001;

/**
 * Makes the statements that issue credentials wait at an advisory lock. At that time they have
 * their snapshot, and have not locked a session or a target. For this it replaces the SQL function
 * `address_ownership`, which each of these statements calls.
 */
export class ParkedIssuers {
  private constructor(private readonly dataSource: DataSource) {}

  static async install(dataSource: DataSource): Promise<ParkedIssuers> {
    await dataSource.query('ALTER FUNCTION address_ownership (uuid, text) RENAME TO ownership');
    await dataSource.query(`
      CREATE FUNCTION address_ownership(org_id uuid, email text) RETURNS TABLE (is_own boolean) LANGUAGE plpgsql VOLATILE AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock_shared(${GATE});
        RETURN QUERY SELECT o.is_own FROM ownership($1, $2) o;
      END $$`);
    return new ParkedIssuers(dataSource);
  }

  /**
   * Calls `issue`, commits a change while the issuing statement waits, and lets the statement
   * continue. Returns the result of `issue`.
   */
  async during<Issued>(
    issue: () => Promise<Issued>,
    change: () => Promise<unknown>,
  ): Promise<Issued> {
    const runner = this.dataSource.createQueryRunner();
    try {
      await runner.query('SELECT pg_advisory_lock($1)', [GATE]);
      const issuing = issue();
      try {
        await untilWaiting(this.dataSource, 1);
        await change();
      } finally {
        await runner.query('SELECT pg_advisory_unlock($1)', [GATE]);
      }
      return await issuing;
    } finally {
      await runner.release();
    }
  }
}
