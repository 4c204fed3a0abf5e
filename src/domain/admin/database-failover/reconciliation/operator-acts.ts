import type { NotedAct } from '#domain/audit/noted-act.js';
import { REASONS, REVOKED_BY } from '../../revocation-kinds/operator-ends.js';

/**
 * Returns the acts in an audit event of the operator's command (`dist/admin.js`) that are repeated
 * if the database loses the event. The processes of the service remember these acts, because the
 * command itself has ended by then.
 */
export function operatorActs({
  type,
  subject_id: userId,
}: {
  readonly type: string;
  readonly subject_id: string | null;
}): readonly NotedAct[] {
  if (userId === null) return [];
  const revoked = { kind: 'credentials_revoked', userId, revokedBy: REVOKED_BY } as const;
  if (type === 'admin_revoke_credentials')
    return [{ ...revoked, reason: REASONS['revoke-everything'], demandsPass: false }];
  if (type === 'enrollment_pass_created')
    return [{ ...revoked, reason: REASONS['give-pass'], demandsPass: true }];
  return [];
}
