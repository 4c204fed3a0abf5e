import { fragment, SqlFragment } from '#platform/database/statements/sql.js';

/**
 * Returns the SQL of a recursive query named `before`. It finds the ids of the tokens that a token
 * of an organization replaced, directly or through a chain of replacements. The tables of SCIM
 * tokens and of API tokens both have the column `replaces`.
 */
export function replacedBefore(
  table: 'scim_tokens' | 'api_tokens',
  orgId: string,
  id: string,
): SqlFragment {
  const tokens = new SqlFragment([table], []);
  return fragment`RECURSIVE before AS (
      SELECT replaces AS id FROM ${tokens} WHERE id = ${id} AND org_id = ${orgId} AND replaces IS NOT NULL
      UNION
      SELECT t.replaces FROM ${tokens} t JOIN before b ON b.id = t.id
      WHERE t.org_id = ${orgId} AND t.replaces IS NOT NULL
    )`;
}
