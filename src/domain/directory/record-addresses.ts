import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { asciiLowerCase } from '#platform/text/single-line.js';

/** An e-mail address of a SCIM record, with its rank among the addresses of the record. */
export interface RecordAddress {
  readonly address: string;
  /**
   * The rank of the e-mail address. The user signs in with the usable address of the lowest rank. A
   * rank is a value of {@link RANK}, or lies between two of them.
   */
  readonly rank: number;
}

/**
 * The rank of an address, by the attribute that contains the address. If several addresses have the
 * type `work`, the rank of each is `severalWork` plus the position in the list of e-mails. The rank
 * of an e-mail of another type is `first` plus the position.
 */
export const RANK = { userName: 0, primary: 1, onlyWork: 2, severalWork: 3, first: 1000 } as const;

/** The e-mail addresses that a SCIM record names, in its userName or its e-mails. */
export interface NamedAddresses {
  /** The e-mail addresses with which a user may be found at a sign-in, sorted by their rank. */
  readonly has: readonly RecordAddress[];
  /** All other e-mail addresses, which are only data and find no user. */
  readonly plain: readonly string[];
}

interface Email {
  readonly address: string;
  readonly isPrimary: boolean;
  readonly isWork: boolean;
}

/**
 * Finds the addresses of a SCIM record: its userName, its primary e-mail and its e-mails of type
 * `work`. If none of these texts is an address, the first e-mail that is an address is used. The
 * database function `addresses_of_record` has the same rule.
 */
export function addressesOf(userName: string, emails: unknown): NamedAddresses {
  const listed = (Array.isArray(emails) ? emails : []).flatMap(emailOf);
  const own = parseEmailAddress(userName);
  const works = new Set(listed.filter(({ isWork }) => isWork).map(({ address }) => address)).size;
  const ranks = new Map<string, number>();
  if (own !== undefined) ranks.set(own, RANK.userName);
  for (const [place, email] of listed.entries()) {
    const rank = rankOf(email, works, place);
    ranks.set(email.address, Math.min(rank, ranks.get(email.address) ?? rank));
  }
  const all = [...ranks]
    .map(([address, rank]) => ({ address, rank }))
    .toSorted((a, b) => a.rank - b.rank);
  const labelled = all.filter(({ rank }) => rank < RANK.first);
  const has =
    labelled.length > 0
      ? labelled
      : all.slice(0, 1).map(({ address }) => ({ address, rank: RANK.first }));
  const had = new Set(has.map(({ address }) => address));
  return { has, plain: [...ranks.keys()].filter((address) => !had.has(address)) };
}

function emailOf(raw: unknown): Email[] {
  if (typeof raw !== 'object' || raw === null) return [];
  const { value, primary, type } = raw as Record<string, unknown>;
  const address = typeof value === 'string' ? parseEmailAddress(value) : undefined;
  if (address === undefined) return [];
  const isWork = typeof type === 'string' && asciiLowerCase(type) === 'work';
  return [{ address, isPrimary: primary === true, isWork }];
}

function rankOf({ isPrimary, isWork }: Email, works: number, place: number): number {
  if (isPrimary) return RANK.primary;
  if (!isWork) return RANK.first + place;
  return works === 1 ? RANK.onlyWork : Math.min(RANK.severalWork + place, RANK.first - 1);
}
