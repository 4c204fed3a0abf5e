import { recordAudit } from '#domain/audit/audit.repository.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { TargetKind } from '../reach/decision.js';
import type { Denied } from './issuance.repository.js';

/** The target that a person did not reach, by the name in the request. */
export interface RefusedTarget {
  readonly kind: TargetKind;
  readonly name: string | null;
  /** The id by which admins know the target, if it is not the name. */
  readonly id?: string | undefined;
  /** The names of groups of hosts whose principals the request asks for. */
  readonly hostGroups?: readonly string[] | undefined;
}

/** Returns true for a denial that is about the reach of a target. */
export function isAboutReach({ denial }: Denied): boolean {
  return denial === 'not_assigned' || denial === 'condition_unmet';
}

/**
 * Returns the SQL of the names of the refused groups of hosts of a user `u`, as they are now: those
 * that match the host, without a host those of the request. A later search finds the refusal by
 * them.
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
 * Records that a person did not reach a target, and if an assignment or a condition was missing. It
 * records no other denial.
 */
export async function recordRefusedAccess(
  tx: EntityManager,
  { userId }: { readonly userId: string },
  { hostGroups, ...target }: RefusedTarget,
  { denial, conditions }: Denied,
  origin: AuditOrigin,
): Promise<void> {
  if (!isAboutReach({ denial })) return;
  const rule = denial === 'not_assigned' ? 'assignment' : 'condition';
  const details = { target, rule, ...(conditions && { conditions }) };
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
