import { admits } from '#domain/access/reach/reach.repository.js';
import type { AdmittedBy, Conditions } from '#domain/access/reach/decision.js';
import { DEVICE_GRANT, FIDO2_GRANT } from '#domain/oauth/applications/grant-types.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The most targets of one kind, such as AWS roles, that the list of a person shows. */
export const MOST_TARGETS = 1000;

/**
 * The OAuth grant types by which a person signs in to an application. A service (an application
 * that acts for itself) uses none of them, so the list leaves services out.
 */
const SIGN_IN_GRANTS = ['authorization_code', DEVICE_GRANT, FIDO2_GRANT];

const ADMITTED = admits(fragment`t`, fragment`u.id`);

/**
 * A row of {@link listOwnReach}: a target that the person may use. Columns that do not apply to its
 * kind are null or empty.
 */
export interface OwnReachRow extends Conditions {
  readonly id: string;
  readonly kind: 'host_group' | 'aws_role' | 'cluster' | 'github_installation' | 'application';
  readonly because: AdmittedBy;
  /**
   * The name of the group of hosts, role, cluster or application; for a GitHub installation, the
   * name of its owner at GitHub.
   */
  readonly name: string | null;
  readonly hosts: readonly string[];
  readonly logins: readonly string[];
  readonly roleArn: string | null;
  readonly region: string | null;
  readonly clientId: string | null;
  readonly resource: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly approvedUris: readonly string[] | null;
}

/**
 * Lists the targets of the organization that admit a person, by kind and name; none for an inactive
 * person. It locks no row, because each statement that issues a credential decides again.
 */
export function listOwnReach(tx: EntityManager, userId: string): Promise<OwnReachRow[]> {
  return sql<OwnReachRow>(tx)`
    SELECT o.* FROM (
    SELECT t.id, r.kind, r.name, t.hosts, t.logins, t.role_arn AS "roleArn", t.region, t.client_id AS "clientId",
           c.resource, c.metadata, c.approved_uris AS "approvedUris", t.models,
           t.touch_within_seconds AS "touchWithinSeconds", t.user_verification AS "userVerification",
           CASE WHEN t.access = 'everyone' THEN 'everyone'
                WHEN EXISTS (SELECT FROM access_assignments x WHERE x.target_id = t.id AND x.user_id = u.id) THEN 'person'
                ELSE 'group' END AS because,
           row_number() OVER (PARTITION BY r.kind ORDER BY r.name, t.id) AS place
    FROM users u
    JOIN access_targets t ON t.org_id = u.org_id
    LEFT JOIN oauth_clients c ON c.id = t.client_id
    LEFT JOIN github_installations n ON n.id = t.installation_id
    CROSS JOIN LATERAL (
      SELECT CASE WHEN c.kind = 'kubernetes' THEN 'cluster' ELSE t.kind END AS kind,
             coalesce(t.name, c.metadata ->> 'client_name', n.owner) AS name) r
    WHERE u.id = ${userId} AND u.active AND ${ADMITTED}
      AND (c.kind IS DISTINCT FROM 'application' OR coalesce(c.metadata -> 'grant_types', '["authorization_code"]') ?| ${SIGN_IN_GRANTS}::text[])
    ) o
    WHERE o.place <= ${MOST_TARGETS}
    ORDER BY array_position(ARRAY['host_group', 'aws_role', 'cluster', 'github_installation', 'application'], o.kind), o.place`;
}

/**
 * Returns the time at which the service first saw that a person has exactly the targets of a
 * digest. It writes a row only if the digest differs from the stored one, so that a read of
 * unchanged targets locks nothing.
 *
 * @param digest the SHA-256 of the targets that the person has now
 * @returns undefined if the person was removed
 */
export async function timeOfOwnReach(
  tx: EntityManager,
  userId: string,
  digest: Buffer,
): Promise<Date | undefined> {
  const [known] = await sql<{ changedAt: Date }>(tx)`
    SELECT changed_at AS "changedAt" FROM own_reach_lists WHERE user_id = ${userId} AND digest = ${digest}`;
  if (known) return known.changedAt;
  const [changed] = await sql<{ changedAt: Date }>(tx)`
    INSERT INTO own_reach_lists AS l (user_id, digest, changed_at)
    SELECT u.id, ${digest}, date_trunc('milliseconds', clock_timestamp()) FROM users u WHERE u.id = ${userId}
    FOR KEY SHARE OF u
    ON CONFLICT (user_id) DO UPDATE SET digest = EXCLUDED.digest,
      changed_at = CASE WHEN l.digest = EXCLUDED.digest THEN l.changed_at
                        ELSE greatest(EXCLUDED.changed_at, l.changed_at + interval '1 millisecond') END
    RETURNING changed_at AS "changedAt"`;
  return changed?.changedAt;
}
