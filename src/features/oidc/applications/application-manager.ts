import type { ApplicationManager } from '#domain/grants/applications.repository.js';
import { ADMIN_SCOPE } from '#domain/sessions/access-token.js';
import { RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';

/** The access rule of applications. */
export const APPLICATIONS = {
  session: 'verified',
  origin: 'own',
  scope: 'svc:applications',
} as const;

/** The access rule for changing the secrets of an application: with a recent touch of the security key. */
export const APPLICATION_SECRETS = {
  ...APPLICATIONS,
  touchedWithinSeconds: RECENT_TOUCH.admin,
} as const;

/** Names the manager of a request. Of an admin with an OAuth access token only one with the scope of admins is more than any person. */
export function managerOf({
  id: sessionId,
  user,
  accessToken,
}: VerifiedSession): ApplicationManager {
  const mayBeAdmin = accessToken === null || accessToken.scope.has(ADMIN_SCOPE);
  return { userId: user.id, orgId: user.orgId, isAdmin: user.isOrgAdmin && mayBeAdmin, sessionId };
}
