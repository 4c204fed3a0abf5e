import { recordAudit } from '#domain/audit/audit.repository.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { TargetKind } from '../reach/decision.js';
import type { Denied } from './issuance.repository.js';

/**
 * The target, such as an AWS role or a host, to which a user got no access, as the request names
 * it.
 */
export interface RefusedTarget {
  readonly kind: TargetKind;
  readonly name: string | null;
  /** The id by which admins know the target, if it differs from the name in the request. */
  readonly id?: string | undefined;
  /**
   * The names of the groups of hosts in the requested principals of an SSH certificate, which have
   * the form `login@group:organization`.
   */
  readonly hostGroups?: readonly string[] | undefined;
  /** The principals that no group of hosts gives the user, as the request names them. */
  readonly principals?: readonly string[] | undefined;
}

/**
 * Returns true for a denial because the target does not admit the user, or because the session does
 * not meet the conditions of the target.
 */
export function isAboutReach({ denial }: Denied): boolean {
  return denial === 'not_assigned' || denial === 'condition_unmet';
}

/**
 * Returns the SQL that lists which groups of hosts were refused to a user `u`, by their present
 * names. With a host, these are the groups that match it; without a host, the groups that the
 * request names. The audit event keeps the names, so that a later search by a group finds the
 * refusal.
 */
function namesOfGroups(host: string | null, named: readonly string[] = []): SqlFragment {
  const isRefused =
    host === null
      ? fragment`h.name = ANY (${named}::text[])`
      : fragment`matches_host(h.hosts, ${host})`;
  return fragment`jsonb_strip_nulls(jsonb_build_object('host_groups', (
    SELECT jsonb_agg(h.name ORDER BY h.name) FROM access_targets h
    WHERE h.org_id = u.org_id AND h.kind = 'host_group' AND ${isRefused})))`;
}

/**
 * Records in the audit log that a user got no access to a target, because an assignment was missing
 * or a condition was not met. Denials with another reason are not recorded.
 */
export async function recordRefusedAccess(
  tx: EntityManager,
  { userId }: { readonly userId: string },
  { hostGroups, principals, ...target }: RefusedTarget,
  { denial, conditions }: Denied,
  origin: AuditOrigin,
): Promise<void> {
  if (!isAboutReach({ denial })) return;
  const rule = denial === 'not_assigned' ? 'assignment' : 'condition';
  const details = {
    target,
    rule,
    ...(conditions && { conditions }),
    ...(principals && { principals }),
  };
  await sql(tx)`${recordAudit(
    {
      type: 'access_refused',
      actorId: userId,
      subjectId: userId,
      orgId: fragment`u.org_id`,
      origin,
      details:
        target.kind === 'host_group'
          ? fragment`${JSON.stringify(details)}::jsonb || ${namesOfGroups(target.name, hostGroups)}`
          : details,
    },
    fragment`FROM users u WHERE u.id = ${userId}`,
  )}`;
}
