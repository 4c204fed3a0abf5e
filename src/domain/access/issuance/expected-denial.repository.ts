import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Conditions } from '../reach/decision.js';
import {
  admits,
  conditionsOf,
  fittingTouchSql,
  hasConditionsSql,
  isMetBy,
} from '../reach/reach.repository.js';
import type { Denied } from './issuance.repository.js';

const TARGET = fragment`r`;

/**
 * Returns the reason why the access rules would now deny an application a token for the user of a
 * session. Returns undefined if they would allow it, or if no access rules apply to the client. A
 * page shows the reason before it asks for consent or for a touch. The decision is only a preview,
 * so no row is locked: the statement that issues the token decides again under locks.
 */
export async function expectedDenial(
  tx: EntityManager,
  sessionId: string,
  clientId: string,
): Promise<Denied | undefined> {
  const touch = fittingTouchSql(TARGET, fragment`s.touches`);
  const [row] = await sql<{ is_admitted: boolean; is_met: boolean; conditions: Conditions }>(tx)`
    SELECT coalesce(${admits(TARGET, fragment`s.user_id`)}, false) AS is_admitted,
           coalesce(NOT (${hasConditionsSql(TARGET)}) OR ${isMetBy(TARGET, touch)}, false) AS is_met,
           ${conditionsOf(TARGET)} AS conditions
    FROM oauth_clients c JOIN sessions s ON s.id = ${sessionId}
    LEFT JOIN access_targets r ON r.client_id = c.id
    WHERE c.id = ${clientId} AND c.kind IN ('application', 'kubernetes') AND c.org_id IS NOT NULL`;
  if (!row) return undefined;
  if (!row.is_admitted) return { denial: 'not_assigned' };
  return row.is_met ? undefined : { denial: 'condition_unmet', conditions: row.conditions };
}
