import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The SQL condition that no application is ending now. It reads a table that is nearly always
 * empty, so that the conditions below cost nothing at other times.
 */
const NONE_IS_ENDING = fragment`NOT EXISTS (SELECT FROM oauth_ending_clients)`;

/**
 * Returns the SQL condition that a grant `g` still counts. The grant does not count if all grants
 * of its client were ended after it was made, or those of the client of a grant above it. A
 * background worker then deletes the row a little later.
 */
export function grantStands(g: SqlFragment): SqlFragment {
  return fragment`(${NONE_IS_ENDING} OR NOT has_ended(${g}.client_id, NULL, ${g}.created_at, ${g}.parent_id))`;
}

/** Returns the SQL condition that a code or token `a` still counts, as {@link grantStands} does. */
export function artifactStands(a: SqlFragment): SqlFragment {
  return fragment`(${NONE_IS_ENDING} OR NOT has_ended(${a}.client_id, ${a}.application_id, ${a}.created_at, ${a}.grant_id))`;
}

/**
 * Returns the SQL condition that a row `row` of a client `c` was made after the last end of
 * everything that was issued to the client. For statements that read many rows: it calls no
 * function for each row, and so it does not look at the grants above a grant.
 */
export function isAfterEnd(row: SqlFragment, c: SqlFragment): SqlFragment {
  return fragment`(${c}.ended_before IS NULL OR ${row}.created_at > ${c}.ended_before)`;
}
