/**
 * Removes the time limits of a session, for work such as a migration that may take any time.
 * Without these statements, the limits that the database role may have would apply.
 */
export const NO_LIMITS =
  'SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0';
