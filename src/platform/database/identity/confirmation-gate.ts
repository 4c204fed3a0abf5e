import type { ClientBase } from 'pg';
import { sqlStateOf, UNCONFIRMED } from '#platform/database/statements/faults.js';

/** The SQLSTATE of a statement about a table that the database does not have. */
const NO_TABLE = '42P01';

/**
 * Refuses new connections to a PostgreSQL that no service has checked for lost commits since
 * PostgreSQL started. After a failover such a server may lack, for example, the end of a session.
 * One check for each connection is enough, because a direct connection stays with its server. A
 * pooler may change the server behind a connection, so statements about credentials check the
 * server too (`CONFIRMED`).
 */
export class ConfirmationGate {
  readonly #listeners: (() => void)[] = [];

  /**
   * Registers a function that is called each time a connection was refused. The function should
   * start the check for lost commits at once, so that the next connections are accepted.
   */
  onRefusal(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Checks that the server of a new connection is confirmed.
   * @throws Error with the SQLSTATE `UNCONFIRMED` if the server is not confirmed; the driver's
   *   error if the query fails
   */
  async check(client: ClientBase): Promise<void> {
    if (await isConfirmed(client)) return;
    this.#listeners.forEach((listener) => listener());
    throw Object.assign(new Error('this start of PostgreSQL is not confirmed'), {
      code: UNCONFIRMED,
    });
  }
}

/**
 * Returns true if the server of a connection is confirmed. A database without the table of the
 * confirmation is not: it was replaced by one whose restore has not ended.
 */
async function isConfirmed(client: ClientBase): Promise<boolean> {
  try {
    const { rows } = await client.query<{ is_confirmed: boolean }>(
      `SELECT started_at = pg_postmaster_start_time() AND database_oid = (
         SELECT oid FROM pg_database WHERE datname = current_database()) AS is_confirmed
       FROM database_identity`,
    );
    return rows[0]?.is_confirmed === true;
  } catch (error) {
    if (sqlStateOf(error) === NO_TABLE) return false;
    throw error;
  }
}
