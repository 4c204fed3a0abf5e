import type { Request } from 'express';
import type { Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { OriginRule } from '#platform/http/routing/route-policy.js';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Makes the check against cross-site request forgery. If a cookie may authorize a write, the write
 * must come from our own origin, or, on routes of the UI, from an origin of SVC_CORS_ORIGINS. A
 * request with a token in its header and without a cookie passes, because a browser never adds a
 * token to the header by itself.
 *
 * @returns a function that throws DomainError invalid_origin if a write from the origin of the
 *   request is not allowed
 */
export function originCheck({ baseUrl, corsOrigins }: Config['http']) {
  const ui: ReadonlySet<string> = new Set([baseUrl, ...corsOrigins]);
  return (request: Request, rule: OriginRule, hasCookie: () => boolean): void => {
    if (rule === 'any' || SAFE_METHODS.has(request.method)) return;
    const { origin, authorization } = request.headers;
    // Without the cookie there is no session that another site could abuse. A call of a route for
    // pages must still come from one of our pages.
    const isBrowsers = hasCookie() || (rule === 'ui' && authorization === undefined);
    if (rule !== 'strict' && !isBrowsers) return;
    const isAllowed = origin !== undefined && (rule === 'ui' ? ui.has(origin) : origin === baseUrl);
    if (!isAllowed) {
      throw new DomainError('invalid_origin', 'This write must come from a page of this service.');
    }
  };
}
