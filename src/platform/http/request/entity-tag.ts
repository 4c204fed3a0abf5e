import { hash } from 'node:crypto';
import { DomainError } from '#platform/errors/domain-error.js';

/**
 * Makes a strong entity tag: the SHA-256 of the body in hexadecimal. A client can compute the same
 * tag from the body.
 */
export function entityTag(body: Buffer | string): string {
  return `"${hash('sha256', body)}"`;
}

/** Makes the entity tag of a value that is rendered as JSON. */
export function jsonTag(value: unknown): string {
  return entityTag(JSON.stringify(value));
}

/**
 * Describes the header `If-Match` of a route that calls {@link assertMatches}, for `/openapi.json`.
 */
export const IF_MATCH = {
  'if-match': 'The `ETag` that was read before. If another request has changed it since, 412.',
} as const;

/**
 * Describes the header `If-Match` of a route that calls {@link assertNames}, for `/openapi.json`.
 */
export const MUST_MATCH = {
  'if-match': 'The `ETag` that was read before: 428 without it, 412 after another change.',
} as const;

/**
 * Refuses a write if the resource has changed since the client read it. A request without
 * `If-Match` passes (RFC 9110 §13.1.1).
 *
 * @throws DomainError precondition_failed if it has changed
 */
export function assertMatches(ifMatch: string | undefined, tag: string): void {
  if (ifMatch === undefined || namesTag(ifMatch, tag)) return;
  const detail = 'This was changed since you opened it. Reload the page and look at it again.';
  throw new DomainError('precondition_failed', detail);
}

/**
 * Refuses a write as {@link assertMatches} does. It also refuses a request without `If-Match` (RFC
 * 6585 §3), because such a write could undo a change that the client has not seen.
 *
 * @throws DomainError precondition_required, precondition_failed
 */
export function assertNames(ifMatch: string | undefined, tag: string): void {
  if (ifMatch !== undefined) return assertMatches(ifMatch, tag);
  const detail = 'Send the `ETag` of what you read as `If-Match`.';
  throw new DomainError('precondition_required', detail);
}

/**
 * Returns true if `If-None-Match` or `If-Match` names an entity tag (RFC 9110 §13.1). The
 * comparison is weak: it ignores the prefix `W/`.
 *
 * `If-None-Match` requires the weak comparison, and clients send our weak tags in `If-Match` too.
 * Express' `request.fresh` also looks at `Cache-Control`, but that header is for caches: `fetch`
 * sends `no-cache` with every `If-None-Match`. So this function ignores it.
 */
export function namesTag(condition: string | undefined, tag: string): boolean {
  if (condition === undefined) return false;
  if (condition.trim() === '*') return true;
  return condition.match(/"[^"]*"/g)?.includes(tag.replace(/^W\//, '')) ?? false;
}
