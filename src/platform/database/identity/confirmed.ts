import { fragment } from '#platform/database/statements/sql.js';

/**
 * A condition for a statement that issues or looks up a credential. It is true if a service has
 * checked the PostgreSQL server for lost commits since the server started (docs/decisions/0020). On
 * an unchecked server the statement fails with the SQLSTATE `UNCONFIRMED`. So a promoted standby or
 * a restored backup, which may lack commits, issues no credential, even behind a pooler.
 *
 * The condition is a SELECT of its own, so that PostgreSQL evaluates it once for each statement and
 * before the first row. A condition on a row would not be evaluated if no row is found. An
 * unchecked server would then reject a lost credential as wrong, and the statement would not fail.
 */
export const CONFIRMED = fragment`
  (SELECT CASE WHEN (SELECT d.started_at = pg_postmaster_start_time() FROM database_identity d) THEN true
    ELSE refuse_unconfirmed_server() END)`;
