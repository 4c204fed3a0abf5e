import type { DataSource } from 'typeorm';
import { untilWaiting } from './lock-waiters.js';

/** The number of the advisory lock at which issuing statements wait in {@link ParkedIssuers}. */
const GATE = 14_001;

/**
 * Makes statements that issue credentials wait at an advisory lock, after they have their snapshot
 * and before they lock a session or a target. To that end, it replaces the SQL function
 * `address_ownership`, which these statements call for the user, whether they are for one request
 * or for several.
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
   * Begins to issue a credential, commits a change while the statement waits, and returns what was
   * issued after that.
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
