import type { EventFacts } from '#domain/audit/audit-filter.js';
import {
  countExpiringTokens,
  type ExpiringApiTokens,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The most members that are counted. If there are more, the count is this number plus one. */
export const MOST_COUNTED_MEMBERS = 10_000;

/** The days before the expiry of a SCIM or API token during which the overview page reports it. */
const NOTICE_DAYS = 30;

/** The numbers that the overview page of the admin console shows. */
export interface MemberFigures {
  /** The number of members; {@link MOST_COUNTED_MEMBERS} plus one if there are more. */
  readonly members: number;
  /**
   * The number of members without a security key; {@link MOST_COUNTED_MEMBERS} plus one if there
   * are more.
   */
  readonly withoutKey: number;
  readonly withOneKey: number;
  /** The number of valid SCIM tokens that expire within 30 days. */
  readonly expiringTokens: number;
  /** The expiry of the SCIM token that expires first; null if none expires within 30 days. */
  readonly firstExpiry: Date | null;
  /** The number of valid API tokens that expire within 30 days, and the earliest expiry. */
  readonly apiTokens: ExpiringApiTokens;
}

/** An administrative event of the audit log, as the overview page lists it. */
export interface AdminEvent extends EventFacts {
  readonly id: string;
  readonly at: Date;
}

/** Reads the numbers for the overview page of an organization in two statements. */
export async function readFigures(tx: EntityManager, orgId: string): Promise<MemberFigures> {
  const apiTokens = await countExpiringTokens(tx, NOTICE_DAYS, orgId);
  const most = MOST_COUNTED_MEMBERS + 1;
  const [row] = await sql<Omit<MemberFigures, 'apiTokens'>>(tx)`
    SELECT (SELECT count(*)::int FROM (SELECT FROM users WHERE org_id = ${orgId} LIMIT ${most}) m) AS members,
           (SELECT count(*)::int FROM (SELECT FROM users WHERE org_id = ${orgId} AND key_count = 0
                                       LIMIT ${most}) m) AS "withoutKey",
           (SELECT count(*)::int FROM (SELECT FROM users WHERE org_id = ${orgId} AND key_count = 1
                                       LIMIT ${most}) m) AS "withOneKey",
           t.n AS "expiringTokens", t.first AS "firstExpiry"
    FROM (SELECT count(*)::int AS n, min(expires_at) AS first FROM scim_tokens
          WHERE org_id = ${orgId} AND revoked_at IS NULL AND expires_at > now()
            AND expires_at < now() + make_interval(days => ${NOTICE_DAYS})) t`;
  if (!row) throw new Error('SELECT returned no row');
  return { ...row, apiTokens };
}

/** Lists the latest administrative events of an organization, the newest first. */
export function listAdminEvents(
  tx: EntityManager,
  orgId: string,
  limit: number,
): Promise<AdminEvent[]> {
  return sql<AdminEvent>(tx)`
    SELECT id, type, actor_id AS "actorId", subject_id AS "subjectId", actor_email AS "actorEmail",
           subject_email AS "subjectEmail", client_name AS "clientName", details, created_at AS at
    FROM audit_events WHERE org_id = ${orgId} AND class = 'admin'
    ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
}
