import type { Response } from 'express';

/** Matches a `Prefer` header that requests a body instead of an empty response (RFC 7240 §4.2). */
const REPRESENTATION = /(?:^|[\s,])return\s*=\s*"?representation"?\s*(?:$|[;,])/i;

/**
 * Responds to a deletion: 204 without a body, or 200 with a body for a client that prefers one.
 *
 * @param prefer the `Prefer` header of the request
 */
export function sendDeleted(response: Response, prefer: string | undefined, body: object): void {
  if (!REPRESENTATION.test(prefer ?? '')) {
    response.status(204).end();
    return;
  }
  response.setHeader('Preference-Applied', 'return=representation');
  response.status(200).json(body);
}
