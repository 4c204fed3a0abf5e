import type { ClientBase } from 'pg';
import { UNCONFIRMED } from '#platform/database/statements/faults.js';

/**
 * Refuses connections to a start of PostgreSQL that is not confirmed. One check for each connection
 * is enough, because a connection stays with its server, unless a pooler is between them.
 */
export class ConfirmationGate {
  readonly #listeners: (() => void)[] = [];

  /**
   * Calls a function each time a connection was refused, so that the server is confirmed without a
   * wait.
   */
  onRefusal(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** @throws Error with the SQLSTATE `UNCONFIRMED`; the driver's error */
  async check(client: ClientBase): Promise<void> {
    const { rows } = await client.query<{ is_confirmed: boolean }>(
      `SELECT started_at = pg_postmaster_start_time() AND database_oid = (
         SELECT oid FROM pg_database WHERE datname = current_database()) AS is_confirmed
       FROM database_identity`,
    );
    if (rows[0]?.is_confirmed === true) return;
    this.#listeners.forEach((listener) => listener());
    throw Object.assign(new Error('this start of PostgreSQL is not confirmed'), {
      code: UNCONFIRMED,
    });
  }
}
