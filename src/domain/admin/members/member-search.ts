import { z } from 'zod';
import { MODEL_NAMES } from '#domain/keys/authenticators/authenticator-models.js';
import { pageLimit } from '#platform/text/query-number.js';
import { isUuid } from '#platform/text/single-line.js';

/** The number of members or keys on a page: without the parameter `limit`, and at most. */
export const PAGE_SIZE = { usual: 100, most: 200 } as const;

/**
 * The ways to sort the list of members. `added`: by the creation of the account. `address`: by the
 * e-mail address. `last_use`: by the last use of a key, the longest ago first.
 */
export const MEMBER_ORDERS = ['added', 'address', 'last_use'] as const;

/** The value of the filter `model` for keys whose model is not in the table of known models. */
export const UNKNOWN_MODEL = 'unknown';

/**
 * The position of a member in the list: the kind of order, the value by which the list is sorted,
 * and the id.
 */
export interface MemberPlace {
  readonly order: (typeof MEMBER_ORDERS)[number];
  readonly value: string;
  readonly id: string;
}

/**
 * Encodes a position in the list of members as an opaque cursor, from which a client reads the next
 * page.
 */
export function writeMemberCursor({ order, value, id }: MemberPlace): string {
  return Buffer.from(JSON.stringify([order, value, id])).toString('base64url');
}

const PLACE = z.tuple([z.enum(MEMBER_ORDERS), z.string().regex(/^\P{Cc}{0,1024}$/u), z.guid()]);

/**
 * Returns the position of a member in the order in which accounts were created, which is the order
 * of their ids.
 */
function placeAfter(id: string): MemberPlace {
  return { order: 'added', value: id, id };
}

/** Reads the position from a cursor; undefined for a text that is not a cursor. */
export function readMemberCursor(cursor: string): MemberPlace | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    const [order, value, id] = PLACE.parse(read);
    return order !== 'last_use' || isDay(value) ? { order, value, id } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Checks that PostgreSQL accepts a day, because `Date` accepts more: it reads February 30 as a day
 * in March, and PostgreSQL has no year 0.
 */
function isDay(value: string): boolean {
  if (value === '-infinity') return true;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(value) || value.startsWith('0000')) return false;
  const day = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value);
}

const place = z
  .string()
  .max(2048)
  .transform((text, context): MemberPlace => {
    const read = isUuid(text) ? placeAfter(text) : readMemberCursor(text);
    if (read) return read;
    context.addIssue({ code: 'custom', message: 'must be the next of a page before' });
    return z.NEVER;
  });

const days = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, 'must be never, or a number of days')
  .transform(Number);

const truth = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .meta({ type: 'boolean' });

/**
 * The parameter `limit` of a list: the most members or keys on a page, or in a file. It has no
 * default value, because a file without it has all of them.
 */
export const LIMIT = pageLimit(PAGE_SIZE.most)
  .optional()
  .describe(`The most items: without it ${PAGE_SIZE.usual} on a page, and all in a file.`);

/** The filters that the list of members and the list of their keys share. */
export const MEMBER_FILTERS = {
  q: z
    .string()
    .trim()
    .min(1)
    .max(254)
    .refine((text) => !/\p{Cc}/u.test(text), 'must be a text without control characters')
    .optional()
    .describe('The beginning of an address, of a name, or of the last word of a name.'),
  model: z
    .enum([...MODEL_NAMES, UNKNOWN_MODEL], { error: 'must be a model' })
    .optional()
    .describe('Members with a key of this model, or in a list of keys the keys of it.'),
  fips: truth
    .optional()
    .describe('`true`: members with a key that is certified by FIPS 140; `false`: with another.'),
  keys: z
    .enum(['none', 'one', 'several'])
    .optional()
    .describe('Members with so many security keys.'),
  last_use: z
    .union([z.literal('never'), days])
    .optional()
    .describe('`never`, or a number of days: members who used no key in these last days.'),
  role: z.enum(['admin', 'member']).optional().describe('Members with this role.'),
  status: z.enum(['active', 'inactive']).optional().describe('Members in this state.'),
  tie: z
    .enum(['twin', 'linked', 'taken_over', 'no_address'])
    .optional()
    .describe(
      'Members by their tie to SCIM records. `twin`: members who signed in with an address of a record, and such records. `no_address`: people without an address of their own to sign in with.',
    ),
} as const;

/**
 * The query parameters of a list of members, in the API and on the page. An unknown parameter is an
 * error, because a client could otherwise believe that the parameter filters the list.
 */
export const MEMBER_QUERY = z
  .strictObject({
    ...MEMBER_FILTERS,
    sort: z
      .enum(MEMBER_ORDERS)
      .optional()
      .describe('The order: by creation unless stated; `last_use` has the longest ago first.'),
    after: place.optional().describe('The `next` of the page before.'),
    limit: LIMIT,
  })
  .refine(({ sort = 'added', after }) => after === undefined || after.order === sort, {
    path: ['after'],
    message: 'must be the next of a page in the same order',
  });
/** The checked query parameters of {@link MEMBER_QUERY}. */
export type MemberQuery = z.output<typeof MEMBER_QUERY>;
