import { z } from 'zod';
import { isUuid } from '#platform/text/single-line.js';
import { LIMIT, MEMBER_FILTERS } from './member-search.js';

/**
 * The position of a key in the list of keys, which is sorted by the member and then by the key.
 * Neither id ever changes, so that each key appears once in a list that is read page by page.
 */
export interface ListedKeyPlace {
  readonly memberId: string;
  readonly keyId: string;
}

/** Writes the position of a key as a cursor, from which a client reads the next page. */
export function writeKeyCursor({ memberId, keyId }: ListedKeyPlace): string {
  return `${memberId}.${keyId}`;
}

/** Reads the position from a cursor; undefined for a text that is not a cursor. */
export function readKeyCursor(cursor: string): ListedKeyPlace | undefined {
  const [memberId = '', keyId = '', ...rest] = cursor.split('.');
  return isUuid(memberId) && isUuid(keyId) && rest.length === 0 ? { memberId, keyId } : undefined;
}

/**
 * The query parameters of a list of keys. The filters `model`, `fips` and `last_use` are about the
 * key itself; the others are about the member who has it. An unknown parameter is an error.
 */
export const KEY_QUERY = z.strictObject({
  ...MEMBER_FILTERS,
  after: z
    .string()
    .max(128)
    .transform((text, context): ListedKeyPlace => {
      const read = readKeyCursor(text);
      if (read) return read;
      context.addIssue({ code: 'custom', message: 'must be the next of a page before' });
      return z.NEVER;
    })
    .optional()
    .describe('The `next` of the page before.'),
  limit: LIMIT,
});
/** The checked query parameters of {@link KEY_QUERY}. */
export type KeyQuery = z.output<typeof KEY_QUERY>;
