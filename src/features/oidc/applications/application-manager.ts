import type { ApplicationManager } from '#domain/grants/clients/applications.repository.js';
import { ADMIN_SCOPE } from '#domain/sessions/access-token.js';
import { RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';

/** The access rule of routes for applications. */
export const APPLICATIONS = {
  session: 'verified',
  origin: 'own',
  scope: 'svc:applications',
} as const;

/** The access rule for changes of secrets: it needs a recent touch of the security key. */
export const APPLICATION_SECRETS = {
  ...APPLICATIONS,
  touchedWithinSeconds: RECENT_TOUCH.admin,
} as const;

/** Returns the manager of a request. An admin with an OAuth access token needs the scope `svc:admin` to act as an admin. */
export function managerOf({
  id: sessionId,
  user,
  accessToken,
}: VerifiedSession): ApplicationManager {
  const mayBeAdmin = accessToken === null || accessToken.scope.has(ADMIN_SCOPE);
  return { userId: user.id, orgId: user.orgId, isAdmin: user.isOrgAdmin && mayBeAdmin, sessionId };
}
