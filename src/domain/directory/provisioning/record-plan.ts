import { isDeepStrictEqual } from 'node:util';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { addressesOf, RANK, type RecordAddress } from '../record-addresses.js';
import type { AddressHolder } from '../record-ties.repository.js';
import { ENTERPRISE_URN, type DirectoryUser } from './directory-user.js';
import type { NextUser, UserState } from './directory-users.repository.js';

/** The addresses of a state, by the names of {@link addressesOf}. */
export function addressesIn({ userName, attributes }: Pick<UserState, 'userName' | 'attributes'>) {
  return addressesOf(userName, (attributes as { readonly emails?: unknown }).emails);
}

/** Another user than the user of a write, who signs in with an address that the write names. */
type Other = Pick<AddressHolder, 'id' | 'email' | 'scimManaged' | 'isTwin' | 'isInUse'>;

/** The effects of a POST on the users who sign in with its addresses. */
export interface CreationPlan<Holder extends Other> {
  /** The member that the new record takes over. */
  readonly takesOver: Holder | undefined;
  /** The members who become twins of the record. */
  readonly twins: readonly Holder[];
  /**
   * The record that loses the address: it has the address only as an e-mail, and has no binding and
   * no key.
   */
  readonly moves: Holder | undefined;
  /** The record that keeps the address. The new record is linked to it. */
  readonly links: Holder | undefined;
}

/**
 * Decides what a POST does to the users who sign in with its addresses. A member who signed in is
 * taken over: the first that fits, in the order of the addresses. A twin is taken over only by the
 * userName. Every other such member becomes a twin. Another record that signs in with the userName
 * either loses the address or is linked.
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

/** Returns the addresses that one state of a record has and another has not. */
export function addressesBeyond(
  has: readonly RecordAddress[],
  before: readonly RecordAddress[],
): string[] {
  const known = new Set(before.map(({ address }) => address));
  return has.flatMap(({ address }) => (known.has(address) ? [] : address));
}

/**
 * Returns true if a state names an address anywhere: in its userName, or in an e-mail of any type.
 */
export function namesAddress(
  state: Pick<UserState, 'userName' | 'attributes'>,
  address: string,
): boolean {
  const { has, plain } = addressesIn(state);
  return plain.includes(address) || has.some((one) => one.address === address);
}

/** Returns true if two userNames are equal, except for the case of their letters. */
export function isSameName(one: string, other: string): boolean {
  return asciiLowerCase(one) === asciiLowerCase(other);
}

/** Returns true if a user is already in the state that a write asks for. */
export function isSame(current: DirectoryUser, next: NextUser): boolean {
  const keys = ['userName', 'externalId', 'active', 'email'] as const;
  if (keys.some((key) => current[key] !== next[key])) return false;
  return isDeepStrictEqual(written(current), JSON.parse(JSON.stringify(next.attributes)));
}

/**
 * Returns the attributes as clients wrote them, without the manager's address and name, which are
 * derived.
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
