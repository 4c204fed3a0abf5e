import type { VerifiedSession } from '#domain/sessions/session.js';
import { adminRequired, type Admin } from '#domain/users/acting-admin.service.js';

/**
 * The admin behind a session that a route with the scope `svc:admin` admitted.
 *
 * @throws DomainError admin_required for whoever has no organization: the access rule has refused them already
 */
export function adminOf({ user: { id, orgId } }: Pick<VerifiedSession, 'user'>): Admin {
  if (orgId === null) throw adminRequired();
  return { id, orgId };
}
