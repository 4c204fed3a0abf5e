import type { Response } from 'express';
import type { SignedIn } from '#domain/sign-in/upstream-login/upstream-login.service.js';
import type { SessionCookies } from '#platform/http/access/session-cookies.service.js';

/**
 * Sets the cookie of the session after a sign-in (a bootstrap session), and redirects the browser
 * to the page on which the user enrolls a security key or uses one.
 */
export function goOn(
  response: Response,
  cookies: SessionCookies,
  { session, next }: SignedIn,
  address: { readonly baseUrl: string; readonly redirectTo: string },
): void {
  if (session) cookies.set(response, session);
  const query = new URLSearchParams({ redirect_to: address.redirectTo });
  response.redirect(303, `${address.baseUrl}/${next}?${query.toString()}`);
}
