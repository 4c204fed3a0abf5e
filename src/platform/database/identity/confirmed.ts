import { fragment } from '#platform/database/statements/sql.js';

/**
 * A condition for a statement that issues or looks up a credential. It is true on a server of
 * PostgreSQL that this service has confirmed since the server started (docs/decisions/0020). On any
 * other server the statement fails with the SQLSTATE `UNCONFIRMED`. So a promoted standby or a
 * restored backup, which may lack commits, issues no credential, even behind a pooler.
 *
 * It is a SELECT of its own, so that PostgreSQL evaluates it once for each statement and before the
 * first row. A condition on a row would not be evaluated if no row is found: an unconfirmed server
 * would then refuse an unknown credential as wrong, instead of failing.
 */
export const CONFIRMED = fragment`
  (SELECT CASE WHEN (SELECT d.started_at = pg_postmaster_start_time() FROM database_identity d) THEN true
    ELSE refuse_unconfirmed_server() END)`;
