import { fragment } from '#platform/database/statements/sql.js';

/**
 * A condition of a statement that issues or looks up a credential. It is true on a confirmed
 * server. On any other server the statement fails with the SQLSTATE `UNCONFIRMED`. So a promoted
 * standby or a restored backup issues no credential, even behind a pooler.
 *
 * It is a SELECT of its own, so that PostgreSQL evaluates it once for each statement and before the
 * first row. Otherwise an unknown credential would be refused as wrong on an unconfirmed server,
 * because no row would be found that the condition is evaluated for.
 */
export const CONFIRMED = fragment`
  (SELECT CASE WHEN (SELECT d.started_at = pg_postmaster_start_time() FROM database_identity d) THEN true
    ELSE refuse_unconfirmed_server() END)`;
