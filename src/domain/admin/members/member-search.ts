import { z } from 'zod';
import { MODEL_NAMES } from '#domain/keys/authenticators/authenticator-models.js';
import { isUuid } from '#platform/text/single-line.js';

/** The number of members or keys on a page. */
export const PAGE_SIZE = { usual: 100, most: 200 } as const;

/**
 * The ways to sort the list: by the time at which the account was created, by the address, and by
 * the last use of a key, the longest ago first.
 */
export const MEMBER_ORDERS = ['added', 'address', 'last_use'] as const;

/** The value of the filter `model` for keys whose model is not in the table of known models. */
export const UNKNOWN_MODEL = 'unknown';

/**
 * The position of a member in the sorted list: the value by which the list is sorted, and the id.
 */
export interface MemberPlace {
  readonly order: (typeof MEMBER_ORDERS)[number];
  readonly value: string;
  readonly id: string;
}

/** Encodes a position in the list as an opaque cursor, from which a client reads the next page. */
export function writeMemberCursor({ order, value, id }: MemberPlace): string {
  return Buffer.from(JSON.stringify([order, value, id])).toString('base64url');
}

const PLACE = z.tuple([z.enum(MEMBER_ORDERS), z.string().regex(/^\P{Cc}{0,1024}$/u), z.guid()]);

/** Returns the position after a member in the order of the accounts' creation. */
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
 * Checks that PostgreSQL accepts a day, because `Date` accepts more: it reads February 30 as March
 * 2, and PostgreSQL has no year 0.
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

const truth = z.enum(['true', 'false']).transform((text) => text === 'true');

/** The parameter `limit` of a list: the most members or keys on a page. */
export const LIMIT = z
  .string()
  .regex(/^\d{1,3}$/, 'must be a whole number')
  .transform(Number)
  .pipe(z.int().min(1).max(PAGE_SIZE.most))
  .optional();

/** The filters that the list of members and the list of their keys share. */
export const MEMBER_FILTERS = {
  /**
   * A text: the beginning of the address, of the name, or of the last word of the name of the
   * member.
   */
  q: z
    .string()
    .trim()
    .min(1)
    .max(254)
    .refine((text) => !/\p{Cc}/u.test(text), 'must be a text without control characters')
    .optional(),
  /** A model of security key; the member must have a key of this model. */
  model: z.enum([...MODEL_NAMES, UNKNOWN_MODEL], { error: 'must be a model' }).optional(),
  /**
   * `true`: the member has a key that is FIPS 140 certified. `false`: the member has a key that is
   * not.
   */
  fips: truth.optional(),
  keys: z.enum(['none', 'one', 'several']).optional(),
  /**
   * `never`: no key of the member was ever used. A number: no key of the member was used in the
   * last so many days.
   */
  last_use: z.union([z.literal('never'), days]).optional(),
  role: z.enum(['admin', 'member']).optional(),
  status: z.enum(['active', 'inactive']).optional(),
  /**
   * Finds members by their tie to SCIM records, which may be about the same person. `twin`: members
   * who signed in with an address of a record, and such records. `no_address`: people without an
   * address of their own to sign in with.
   */
  tie: z.enum(['twin', 'linked', 'taken_over', 'no_address']).optional(),
} as const;

/**
 * The query parameters of a list of members, in the API and on the page. An unknown parameter is an
 * error. If it were ignored, a client could believe that it filters.
 */
export const MEMBER_QUERY = z
  .strictObject({
    ...MEMBER_FILTERS,
    sort: z.enum(MEMBER_ORDERS).optional(),
    /** The cursor `next` of the previous page, or in the order `added` the id of a member. */
    after: place.optional(),
    limit: LIMIT,
  })
  .refine(({ sort = 'added', after }) => after === undefined || after.order === sort, {
    path: ['after'],
    message: 'must be the next of a page in the same order',
  });
/** The checked query parameters of {@link MEMBER_QUERY}. */
export type MemberQuery = z.output<typeof MEMBER_QUERY>;
