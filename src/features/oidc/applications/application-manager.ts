import type { ApplicationManager } from '#domain/grants/applications.repository.js';
import { ADMIN_SCOPE } from '#domain/sessions/access-token.js';
import type { VerifiedSession } from '#domain/sessions/session.js';

/** Who asks. Of an admin with an OAuth access token only one with the scope of admins is more than any person. */
export function managerOf({ user, accessToken }: VerifiedSession): ApplicationManager {
  const mayBeAdmin = accessToken === null || accessToken.scope.has(ADMIN_SCOPE);
  return { userId: user.id, orgId: user.orgId, isAdmin: user.isOrgAdmin && mayBeAdmin };
}
