import { fragment } from '#platform/database/statements/sql.js';

/**
 * A condition of a statement that issues or looks up a credential. It is true on a confirmed
 * server. On another server the statement fails with the SQLSTATE `UNCONFIRMED`. So a promoted
 * standby or a restored backup gives nothing, even behind a pooler. PostgreSQL reads the one row
 * once for each statement.
 */
export const CONFIRMED = fragment`
  CASE WHEN (SELECT d.started_at = pg_postmaster_start_time() FROM database_identity d) THEN true
    ELSE refuse_unconfirmed_server() END`;
