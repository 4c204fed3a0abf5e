import type { Response } from 'express';
import type { SignedIn } from '#domain/sign-in/upstream-login/upstream-login.service.js';
import type { SessionCookies } from '#platform/http/access/session-cookies.service.js';

/**
 * Sets the cookie of the bootstrap session that a sign-in at an identity provider opened. Then it
 * redirects the browser to the page on which the user enrolls a security key or uses one. Without a
 * new session, the browser keeps its verified session.
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
