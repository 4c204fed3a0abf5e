import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { fragment, sql } from '#platform/database/statements/sql.js';

/** A write of an identity provider by SCIM that was refused, or of which a part was left out. */
export interface ScimRefusal {
  readonly resourceType: string;
  /** The id of the existing user or group; empty for a new or an unknown one. */
  readonly resourceId: string;
  /** The code of the error, or `left_out` if only a part was not applied. */
  readonly reason: string;
  readonly method: string;
  readonly detail: string;
}

/** Refusals with the same resource and reason, with their number. */
export interface CountedRefusal extends ScimRefusal {
  readonly count: number;
}

/** The refusals of one SCIM token about one resource and for one reason. */
export interface ListedRefusal extends CountedRefusal {
  readonly tokenId: string;
  readonly firstAt: Date;
  readonly lastAt: Date;
}

/** A SCIM token whose write was refused, with the origin of the request. */
export interface RefusedActor {
  readonly orgId: string;
  readonly tokenId: string;
  readonly origin: AuditOrigin;
}

/**
 * Counts refusals of SCIM writes. The first refusal in an hour with the same token, resource and
 * reason makes an audit event. The event also states the number of refusals since the previous
 * event. All ids that are not in the organization are counted together, because a client can make
 * up any number of them. Of many concurrent refusals exactly one makes the event, because `INSERT …
 * ON CONFLICT` locks the row with the count.
 *
 * @returns the refusals for which an audit event was made now
 */
export async function countRefusals(
  tx: EntityManager,
  { orgId, tokenId, origin }: RefusedActor,
  refusals: readonly CountedRefusal[],
): Promise<CountedRefusal[]> {
  const column = (key: keyof CountedRefusal) => refusals.map((each) => each[key]);
  const details = fragment`jsonb_build_object('scim_token_id', ${tokenId}::text, 'method', method,
    'resource_type', resource_type, 'resource_id', nullif(resource_id, ''), 'reason', reason, 'detail', detail, 'count', counted)`;
  const subjectId = fragment`(SELECT u.id FROM users u
    WHERE resource_type = 'User' AND u.org_id = ${orgId}::uuid AND u.id = nullif(resource_id, '')::uuid)`;
  const type = 'scim_request_refused';
  const record = { id: fragment`event_id`, type, subjectId, orgId, origin, details } as const;
  return sql<CountedRefusal>(tx)`
    WITH sent AS (
      SELECT * FROM unnest(${column('resourceType')}::text[], ${column('resourceId')}::text[], ${column('reason')}::text[],
        ${column('method')}::text[], ${column('detail')}::text[], ${column('count')}::bigint[],
        ${refusals.map(() => newUuid())}::uuid[]) AS g (resource_type, resource_id, reason, method, detail, n, event_id)
    ), known AS (
      SELECT s.*, CASE WHEN u.id IS NULL AND g.id IS NULL THEN '' ELSE s.resource_id END AS known_id FROM sent s
      LEFT JOIN users u ON s.resource_type = 'User' AND u.org_id = ${orgId} AND u.id = nullif(s.resource_id, '')::uuid
      LEFT JOIN groups g ON s.resource_type = 'Group' AND g.org_id = ${orgId} AND g.id = nullif(s.resource_id, '')::uuid
    ), given AS (
      SELECT resource_type, known_id AS resource_id, reason, min(method) AS method, min(detail) AS detail,
             sum(n)::bigint AS n, (array_agg(event_id))[1] AS event_id
      FROM known GROUP BY resource_type, known_id, reason
    ), counted AS (
      INSERT INTO scim_refusals AS known
        (token_id, resource_type, resource_id, reason, method, detail, total, counted, event_id)
      SELECT ${tokenId}::uuid, resource_type, resource_id, reason, method, detail, n, n, event_id
      FROM given ORDER BY resource_type, resource_id, reason
      ON CONFLICT (token_id, resource_type, resource_id, reason) DO UPDATE SET
        (method, detail, total, last_at, pending, counted, event_id, recorded_at) = (
          SELECT excluded.method, excluded.detail, known.total + excluded.total, now(),
                 CASE WHEN is_due THEN 0 ELSE known.pending + excluded.total END,
                 CASE WHEN is_due THEN known.pending + excluded.total ELSE known.counted END,
                 CASE WHEN is_due THEN excluded.event_id ELSE known.event_id END,
                 CASE WHEN is_due THEN now() ELSE known.recorded_at END
          FROM (SELECT known.recorded_at <= now() - interval '1 hour' AS is_due) AS hour)
      RETURNING resource_type, resource_id, reason, method, detail, counted, event_id
    ), due AS (
      SELECT c.* FROM counted c JOIN given g ON g.event_id = c.event_id
    ), audited AS (${recordAudit(record, fragment`FROM due`)})
    SELECT resource_type AS "resourceType", resource_id AS "resourceId", reason, method, detail, counted::int AS count,
           event_id AS recorded FROM due`;
}

/**
 * Lists the last refused SCIM writes of the valid tokens of an organization, the newest first, at
 * most `most`.
 */
export async function listRefusals(
  tx: EntityManager,
  orgId: string,
  most: number,
): Promise<ListedRefusal[]> {
  return sql<ListedRefusal>(tx)`
    SELECT r.token_id AS "tokenId", r.resource_type AS "resourceType", r.resource_id AS "resourceId", r.reason, r.method,
           r.detail, r.total::int AS count, r.first_at AS "firstAt", r.last_at AS "lastAt"
    FROM scim_tokens t CROSS JOIN LATERAL (
      SELECT * FROM scim_refusals r WHERE r.token_id = t.id ORDER BY r.last_at DESC LIMIT ${most}
    ) r
    WHERE t.org_id = ${orgId} AND t.revoked_at IS NULL AND t.expires_at > now()
    ORDER BY r.last_at DESC LIMIT ${most}`;
}
