import { isDeepStrictEqual } from 'node:util';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { addressesOf, RANK, type RecordAddress } from '../record-addresses.js';
import type { AddressHolder } from '../record-ties.repository.js';
import { ENTERPRISE_URN, type DirectoryUser } from './directory-user.js';
import type { NextUser, UserState } from './directory-users.repository.js';

/**
 * Returns the e-mail addresses of a user, in two groups: those with which the user may sign in, and
 * those that are only data. {@link addressesOf} has the rule.
 */
export function addressesIn({ userName, attributes }: Pick<UserState, 'userName' | 'attributes'>) {
  return addressesOf(userName, (attributes as { readonly emails?: unknown }).emails);
}

/** Another user, who signs in with an e-mail address that a SCIM client writes into a record. */
type Other = Pick<AddressHolder, 'id' | 'email' | 'scimManaged' | 'isTwin' | 'isInUse'>;

/**
 * The effects of the creation of a SCIM record on the users who already sign in with its e-mail
 * addresses.
 */
export interface CreationPlan<Holder extends Other> {
  /**
   * The member that the new record takes over: the record gets the id and the keys of the member.
   */
  readonly takesOver: Holder | undefined;
  /**
   * The members who become twins of the record. They signed in with an e-mail address of the
   * record, and will lose access when the user of the record does.
   */
  readonly twins: readonly Holder[];
  /**
   * Another record whose user cannot sign in with its address any more, because the new record gets
   * the address. The other record has the address only as an e-mail and not as its userName. No
   * person has used the other record: it has no bound identity and no key.
   */
  readonly moves: Holder | undefined;
  /**
   * Another record whose user keeps an e-mail address of the new record. The new record is linked
   * to it, and the user of the new record gets no address to sign in with.
   */
  readonly links: Holder | undefined;
}

/**
 * Decides what the creation of a SCIM record does to the users who already sign in with its e-mail
 * addresses. The record takes over the first member with one of its addresses. A member who already
 * belongs to another record (a twin) is taken over only if the userName is the member's address.
 * Every other member with one of its addresses becomes a twin of the new record. Another record
 * that signs in with the userName either loses the address to the new record, or the two records
 * are linked.
 *
 * @param has the addresses of the new record
 */
export function planCreation<Holder extends Other>(
  has: readonly RecordAddress[],
  holders: readonly Holder[],
): CreationPlan<Holder> {
  const fits = has.flatMap(({ address, rank }) =>
    holders.filter(({ email }) => email === address).map((holder) => ({ holder, rank })),
  );
  const unmanaged = fits.filter(({ holder }) => !holder.scimManaged);
  const takesOver = unmanaged.find(
    ({ holder, rank }) => rank === RANK.userName || !holder.isTwin,
  )?.holder;
  const named = fits.find(({ holder, rank }) => holder.scimManaged && rank === RANK.userName);
  return {
    takesOver,
    twins: unmanaged.map(({ holder }) => holder).filter((holder) => holder !== takesOver),
    moves: named && !named.holder.isInUse ? named.holder : undefined,
    links: named?.holder.isInUse ? named.holder : undefined,
  };
}

/**
 * Returns the e-mail addresses of one list that another list does not have, such as those that a
 * write newly gives to a record.
 */
export function addressesBeyond(
  has: readonly RecordAddress[],
  before: readonly RecordAddress[],
): string[] {
  const known = new Set(before.map(({ address }) => address));
  return has.flatMap(({ address }) => (known.has(address) ? [] : address));
}

/**
 * Returns true if the attributes of a record name an address, in the userName or in an e-mail of
 * any type.
 */
export function namesAddress(
  state: Pick<UserState, 'userName' | 'attributes'>,
  address: string,
): boolean {
  const { has, plain } = addressesIn(state);
  return plain.includes(address) || has.some((one) => one.address === address);
}

/** Returns true if two userNames are equal without regard to upper and lower case. */
export function isSameName(one: string, other: string): boolean {
  return asciiLowerCase(one) === asciiLowerCase(other);
}

/**
 * Returns true if a user is already in the state that a write asks for, so that nothing has to be
 * written.
 */
export function isSame(current: DirectoryUser, next: NextUser): boolean {
  const keys = ['userName', 'externalId', 'active', 'email'] as const;
  if (keys.some((key) => current[key] !== next[key])) return false;
  return isDeepStrictEqual(written(current), JSON.parse(JSON.stringify(next.attributes)));
}

/**
 * Returns the attributes as clients wrote them. The manager's URL and name are removed, because the
 * service computes them.
 */
function written({ attributes }: DirectoryUser): unknown {
  const all = JSON.parse(attributes) as Record<string, unknown>;
  const extension = all[ENTERPRISE_URN];
  const manager = isRecord(extension) ? extension['manager'] : undefined;
  if (!isRecord(extension) || !isRecord(manager)) return all;
  const { $ref: _, displayName: __, ...own } = manager;
  return { ...all, [ENTERPRISE_URN]: { ...extension, manager: own } };
}

function isRecord(raw: unknown): raw is Readonly<Record<string, unknown>> {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw);
}
