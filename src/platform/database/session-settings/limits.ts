/**
 * Removes the time limits of a session, for work that takes as long as it takes. The role may have
 * limits of its own, such as those that a pooler needs.
 */
export const NO_LIMITS =
  'SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0';
