import { isDeepStrictEqual } from 'node:util';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { addressesOf, RANK, type RecordAddress } from '../record-addresses.js';
import type { AddressHolder } from '../record-ties.repository.js';
import { ENTERPRISE_URN, type DirectoryUser } from './directory-user.js';
import type { NextUser, UserState } from './directory-users.repository.js';

/**
 * Returns the addresses that a state of a user names, sorted into those that count and those
 * without effect, as {@link addressesOf} does.
 */
export function addressesIn({ userName, attributes }: Pick<UserState, 'userName' | 'attributes'>) {
  return addressesOf(userName, (attributes as { readonly emails?: unknown }).emails);
}

/** Another user, who signs in with an address that a write of SCIM names for a record. */
type Other = Pick<AddressHolder, 'id' | 'email' | 'scimManaged' | 'isTwin' | 'isInUse'>;

/**
 * The effects of the creation of a SCIM record on the users who already sign in with its addresses.
 */
export interface CreationPlan<Holder extends Other> {
  /**
   * The member that the new record takes over: the record gets the id and the keys of the member.
   */
  readonly takesOver: Holder | undefined;
  /** The members who become twins of the record, which means that they end when the record ends. */
  readonly twins: readonly Holder[];
  /**
   * Another record that loses the address to the new one. It has the address only as an e-mail, and
   * no person has used it: it has no bound identity and no key.
   */
  readonly moves: Holder | undefined;
  /**
   * Another record that keeps the address. The new record is linked to it, and gets no address to
   * sign in with.
   */
  readonly links: Holder | undefined;
}

/**
 * Decides what the creation of a SCIM record does to the users who already sign in with its
 * addresses. The first member who fits, in the order of the addresses, is taken over; a twin of
 * another record fits only by the userName. Every other such member becomes a twin. Another record
 * that signs in with the userName either loses the address or is linked.
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

/** Returns the addresses that one state of a record has and another state of it has not. */
export function addressesBeyond(
  has: readonly RecordAddress[],
  before: readonly RecordAddress[],
): string[] {
  const known = new Set(before.map(({ address }) => address));
  return has.flatMap(({ address }) => (known.has(address) ? [] : address));
}

/**
 * Returns true if a state of a record names an address: in its userName, or in an e-mail of any
 * type.
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
 * Returns the attributes as clients wrote them. The manager's address and name are removed, because
 * the service computes them.
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
