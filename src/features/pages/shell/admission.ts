import type { Response } from 'express';
import { adminOf, adminRequired } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { LiveSession, VerifiedSession } from '#domain/sessions/session.js';

/**
 * The rules that all pages of the account and of the admin console share. The session is optional
 * in these rules, because the page itself redirects a visitor without a session to the login.
 */
export const PAGE_ROUTE = {
  tier: 'general',
  audience: 'ui',
  errors: 'html',
  auth: { session: 'optional', origin: 'ui' },
} as const;

/**
 * Admits a user who logged in with a security key. Any other visitor is redirected to the login,
 * which leads back to the page.
 *
 * @returns the session; undefined if the visitor was redirected
 */
export function admitUser(
  session: LiveSession | undefined,
  response: Response,
): VerifiedSession | undefined {
  if (session?.level === 'verified') return session;
  response.redirect(303, `/login?redirect_to=${encodeURIComponent(response.req.originalUrl)}`);
  return undefined;
}

/**
 * Admits an admin of an organization who logged in with a security key. A visitor who did not log
 * in is redirected to the login.
 *
 * @returns the session and the admin; undefined if the visitor was redirected
 * @throws DomainError admin_required for a user who is no admin
 */
export function admitAdmin(
  session: LiveSession | undefined,
  response: Response,
): { readonly session: VerifiedSession; readonly admin: Admin } | undefined {
  const admitted = admitUser(session, response);
  if (!admitted) return undefined;
  if (!admitted.user.isOrgAdmin) throw adminRequired();
  return { session: admitted, admin: adminOf(admitted) };
}
