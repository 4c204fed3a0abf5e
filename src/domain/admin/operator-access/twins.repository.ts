import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * A member who signed in with an e-mail address that a SCIM record also has. The member is called a
 * twin of the record, and loses access if the user of the record does.
 */
export interface KnownTwin {
  readonly id: string;
  readonly email: string | null;
  readonly active: boolean;
  readonly recordId: string;
  readonly recordName: string | null;
  readonly isRecordActive: boolean;
  readonly organization: string;
}

/** The most members that {@link listTwins} returns. */
export const MOST_TWINS = 1000;

/**
 * Lists the members of all organizations who signed in with an e-mail address of a SCIM record
 * (twins). Twins of an inactive record come first.
 */
export function listTwins(tx: EntityManager): Promise<KnownTwin[]> {
  return sql<KnownTwin>(tx)`
    SELECT u.id, u.email, u.active, r.id AS "recordId", r.user_name AS "recordName", r.active AS "isRecordActive",
           o.name AS organization
    FROM record_ties t
    JOIN users u ON u.id = t.user_id JOIN users r ON r.id = t.record_id JOIN organizations o ON o.id = t.org_id
    WHERE t.kind = 'twin'
    ORDER BY r.active, o.name, u.email, u.id LIMIT ${MOST_TWINS}`;
}
