import { z } from 'zod';
import { MODEL_NAMES } from '#domain/keys/authenticators/authenticator-models.js';

/** The number of members on a page. */
const PAGE_SIZE = { usual: 100, most: 200 } as const;

/**
 * The orders of a list: by the time of the account, by the address, and by the last use of a key,
 * the longest ago first.
 */
export const MEMBER_ORDERS = ['added', 'address', 'last_use'] as const;

/** The value of the filter `model` for keys whose model is in no table. */
export const UNKNOWN_MODEL = 'unknown';

/** The place of a member in an order: the value that the order compares, and the id. */
export interface MemberPlace {
  readonly order: (typeof MEMBER_ORDERS)[number];
  readonly value: string;
  readonly id: string;
}

/** Writes a place as an opaque cursor. */
export function writeMemberCursor({ order, value, id }: MemberPlace): string {
  return Buffer.from(JSON.stringify([order, value, id])).toString('base64url');
}

const PLACE = z.tuple([z.enum(MEMBER_ORDERS), z.string().regex(/^\P{Cc}{0,1024}$/u), z.guid()]);

/** Reads a place from a cursor; undefined for a text that is not a cursor. */
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
 * Checks that PostgreSQL accepts the day: `Date` reads February 30 as March 2, and PostgreSQL has
 * no year 0.
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
    const read = readMemberCursor(text);
    if (read) return read;
    context.addIssue({ code: 'custom', message: 'must be the next of a page before' });
    return z.NEVER;
  });

const days = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, 'must be never, or a number of days')
  .transform(Number);

const truth = z.enum(['true', 'false']).transform((text) => text === 'true');

/**
 * The query of a list of members, in the API and on the page. An unknown parameter is an error,
 * because a client could take an ignored one for a filter.
 */
export const MEMBER_QUERY = z
  .strictObject({
    /** The beginning of the address, of the name, or of the last word of the name. */
    q: z
      .string()
      .trim()
      .min(1)
      .max(254)
      .refine((text) => !/\p{Cc}/u.test(text), 'must be a text without control characters')
      .optional(),
    /** A model of which the member has a key. */
    model: z.enum([...MODEL_NAMES, UNKNOWN_MODEL], { error: 'must be a model' }).optional(),
    /**
     * `true`: the member has a key that is certified by FIPS 140. `false`: the member has a key
     * that is not.
     */
    fips: truth.optional(),
    keys: z.enum(['none', 'one', 'several']).optional(),
    /** `never`: no key of the member was ever used. A number: no key was used in so many days. */
    last_use: z.union([z.literal('never'), days]).optional(),
    role: z.enum(['admin', 'member']).optional(),
    status: z.enum(['active', 'inactive']).optional(),
    /**
     * `twin`: twins and the records that have twins. `no_address`: people without an address of
     * their own to sign in with.
     */
    tie: z.enum(['twin', 'linked', 'taken_over', 'no_address']).optional(),
    sort: z.enum(MEMBER_ORDERS).optional(),
    /** The `next` of the previous page. */
    after: place.optional(),
    limit: z
      .string()
      .regex(/^\d{1,3}$/, 'must be a whole number')
      .transform(Number)
      .pipe(z.int().min(1).max(PAGE_SIZE.most))
      .default(PAGE_SIZE.usual),
  })
  .refine(({ sort = 'added', after }) => after === undefined || after.order === sort, {
    path: ['after'],
    message: 'must be the next of a page in the same order',
  });
/** The result of {@link MEMBER_QUERY}. */
export type MemberQuery = z.output<typeof MEMBER_QUERY>;
