import type { Program } from '#domain/directory/api-tokens/api-tokens.repository.js';
import type { ApplicationManager } from '#domain/oauth/applications/applications.repository.js';
import { ADMIN_SCOPE, APPLICATIONS_SCOPE } from '#domain/sessions/access-token.js';
import { RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';

/**
 * The access rule of routes that read applications: a session in which the user logged in with a
 * security key. If the request has an OAuth access token, the token needs the scope
 * `svc:applications`.
 */
export const APPLICATION_READS = {
  session: 'verified',
  origin: 'own',
  scope: APPLICATIONS_SCOPE,
} as const;

/**
 * The access rule of routes that change applications: it needs a recent touch of the security key.
 */
export const APPLICATION_WRITES = {
  ...APPLICATION_READS,
  touchedWithinSeconds: RECENT_TOUCH.admin,
} as const;

/**
 * An id that belongs to no user. It stands for a program, which is a script with an API token and
 * owns no application.
 */
const NO_USER = '00000000-0000-0000-0000-000000000000';

/**
 * Returns the application manager for a program, which is a script with an API token of an
 * organization. A program sees what the admins of the organization see.
 */
export function managerOfProgram({ orgId }: Program): ApplicationManager {
  return { userId: NO_USER, orgId, isAdmin: true, isOrgAdmin: true, sessionId: NO_USER };
}

/**
 * Returns the user who manages applications in a request. If the request has an OAuth access token,
 * an admin has the rights of an admin only with the scope `svc:admin`.
 */
export function managerOf({
  id: sessionId,
  user,
  accessToken,
}: VerifiedSession): ApplicationManager {
  const mayBeAdmin = accessToken === null || accessToken.scope.has(ADMIN_SCOPE);
  const { id: userId, orgId, isOrgAdmin } = user;
  return { userId, orgId, isAdmin: isOrgAdmin && mayBeAdmin, isOrgAdmin, sessionId };
}
