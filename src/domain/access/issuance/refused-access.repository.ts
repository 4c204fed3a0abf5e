import { recordAudit } from '#domain/audit/audit.repository.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { TargetKind } from '../reach/decision.js';
import type { Denied } from './issuance.repository.js';

/** The target that a person did not reach, by the name in the request. */
export interface RefusedTarget {
  readonly kind: TargetKind;
  readonly name: string | null;
  /** The id by which admins know the target, if it is not the name. */
  readonly id?: string | undefined;
}

/** Returns true for a denial that is about the reach of a target. */
export function isAboutReach({ denial }: Denied): boolean {
  return denial === 'not_assigned' || denial === 'condition_unmet';
}

/**
 * Records that a person did not reach a target, and if an assignment or a condition was missing. It
 * records no other denial.
 */
export async function recordRefusedAccess(
  tx: EntityManager,
  { userId }: { readonly userId: string },
  target: RefusedTarget,
  { denial, conditions }: Denied,
  origin: AuditOrigin,
): Promise<void> {
  if (!isAboutReach({ denial })) return;
  const rule = denial === 'not_assigned' ? 'assignment' : 'condition';
  await sql(tx)`${recordAudit(
    {
      type: 'access_refused',
      actorId: userId,
      subjectId: userId,
      orgId: fragment`u.org_id`,
      origin,
      details: { target, rule, ...(conditions && { conditions }) },
    },
    fragment`FROM users u WHERE u.id = ${userId}`,
  )}`;
}
