import type { Response } from 'express';
import { z } from 'zod';

/** Matches a `Prefer` header that requests a body instead of an empty response (RFC 7240 §4.2). */
const REPRESENTATION = /(?:^|[\s,])return\s*=\s*"?representation"?\s*(?:$|[;,])/i;

/** Describes the header `Prefer` of a route that calls {@link sendDeleted}, for `/openapi.json`. */
export const PREFER = {
  prefer: '`return=representation` asks for 200 with the numbers of what ended, in place of 204.',
} as const;

/** The schema of the response body after a deletion that ended access, such as sessions. */
export const DELETED_JSON = z
  .object({
    ended: z.record(z.string(), z.int()).describe('The numbers of what ended, by their kind.'),
  })
  .meta({ id: 'Deleted', description: 'What a deletion ended.' });

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
