import { parseCookie, stringifySetCookie } from 'cookie';
import type { Request, Response } from 'express';

/**
 * Returns the value of a cookie; undefined if the request does not send it, or sends it twice with
 * different values.
 */
export function readCookie(request: Request, name: string): string | undefined {
  const values = readCookieValues(request, name);
  return values.length === 1 ? values[0] : undefined;
}

/**
 * Returns the different values that a request sends for one cookie; an empty array if it sends
 * none.
 */
export function readCookieValues(request: Request, name: string): string[] {
  const pairs = (request.headers.cookie ?? '').split(';');
  const values = pairs.map((pair) => parseCookie(pair)[name]);
  return [...new Set(values.filter((value) => value !== undefined))];
}

/**
 * Sets a cookie that scripts cannot read, and that browsers do not send with writes from other
 * sites: HttpOnly, SameSite=Lax, Path=/ by default. (The cookies of the OAuth library get their
 * attributes in `features/oidc/engine/provider-options.service.ts`.)
 */
export function setCookie(
  response: Response,
  name: string,
  value: string,
  options: { readonly secure: boolean; readonly maxAgeSeconds?: number; readonly path?: string },
): void {
  const cookie = stringifySetCookie({
    name,
    value,
    path: options.path ?? '/',
    httpOnly: true,
    sameSite: 'lax',
    secure: options.secure,
    ...(options.maxAgeSeconds === undefined ? {} : { maxAge: options.maxAgeSeconds }),
  });
  response.append('set-cookie', cookie);
}
