import { z } from 'zod';
import { TARGET_KINDS } from '#domain/access/reach/decision.js';
import { pageLimit } from '#platform/text/query-number.js';
import { isSingleLine, isUuid } from '#platform/text/single-line.js';

/** The number of targets or people on a page: without the parameter `limit`, and at most. */
const PAGE_SIZE = { usual: 100, most: 200 } as const;

/**
 * The position of a target in the list, which is sorted by the kind, the name and the id of the
 * targets.
 */
export interface TargetPlace {
  readonly kind: string;
  readonly name: string;
  readonly id: string;
}

/**
 * Encodes a position in the list of targets as an opaque cursor, from which a client reads the next
 * page.
 */
export function writeTargetCursor({ kind, name, id }: TargetPlace): string {
  return Buffer.from(JSON.stringify([kind, name, id])).toString('base64url');
}

const PLACE = z.tuple([z.enum(TARGET_KINDS), z.string().regex(/^\P{Cc}{0,1024}$/u), z.guid()]);

const CURSOR_PROBLEM = 'must be the next of a page before';

const place = z
  .string()
  .max(8192)
  .transform((text, context): TargetPlace => {
    try {
      const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
      const [kind, name, id] = PLACE.parse(read);
      return { kind, name, id };
    } catch {
      context.addIssue({ code: 'custom', message: CURSOR_PROBLEM });
      return z.NEVER;
    }
  });

const limit = pageLimit(PAGE_SIZE.most)
  .default(PAGE_SIZE.usual)
  .describe(`The most items of the page: ${PAGE_SIZE.usual} unless stated.`);

/**
 * The query parameters of a list of targets (such as AWS roles and groups of hosts), in the API and
 * on the pages of admins.
 */
export const TARGET_QUERY = z.strictObject({
  kind: z.enum(TARGET_KINDS).optional().describe('Targets of this kind.'),
  q: z
    .string()
    .trim()
    .min(1)
    .max(254)
    .refine(isSingleLine, 'must be a text without control characters')
    .optional()
    .describe('A part of the name, of the ARN or of the client id, in upper or lower case.'),
  after: place.optional().describe('The `next` of the page before.'),
  limit,
});
/** The checked query parameters of {@link TARGET_QUERY}. */
export type TargetQuery = z.output<typeof TARGET_QUERY>;

/** The query parameters of a list of the people that a target admits. */
export const ADMITTED_QUERY = z.strictObject({
  after: z
    .string()
    .refine(isUuid, CURSOR_PROBLEM)
    .optional()
    .describe('The `next` of the page before: the id of its last person.'),
  limit,
});
/** The checked query parameters of {@link ADMITTED_QUERY}. */
export type AdmittedQuery = z.output<typeof ADMITTED_QUERY>;
