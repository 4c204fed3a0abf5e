import type { VerifiedSession } from '#domain/sessions/session.js';
import { RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import { adminRequired } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';

/** The access rule for reading as an admin. */
export const ADMIN_READS = { session: 'verified', origin: 'own', scope: 'svc:admin' } as const;

/** The access rule for changing things as an admin: with a recent touch of the security key. */
export const ADMIN_WRITES = { ...ADMIN_READS, touchedWithinSeconds: RECENT_TOUCH.admin } as const;

/**
 * The admin behind a session that a route with the scope `svc:admin` admitted.
 *
 * @throws DomainError admin_required for whoever has no organization: the access rule has refused them already
 */
export function adminOf({ id: sessionId, user }: Pick<VerifiedSession, 'id' | 'user'>): Admin {
  const { id, orgId } = user;
  if (orgId === null) throw adminRequired();
  return { id, orgId, sessionId };
}
