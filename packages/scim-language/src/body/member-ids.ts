import type { ScimError } from '../errors/scim-error.js';
import { GROUP_ATTRIBUTES } from '../schema/attributes/user-and-group-attributes.js';
import { asciiLowerCase } from '../text/ascii.js';
import {
  invalidValue,
  isEmpty,
  isFault,
  isObject,
  partsOrFault,
  type ValueFault,
} from '../schema/attribute-value.js';

const MEMBERS = GROUP_ATTRIBUTES.find(({ name }) => name === 'members');
const MAX_ID = 512;

/**
 * Reads the ids in a list of group members, without duplicates: the `value` of each object, or the
 * string itself. Whether the ids exist is not checked here.
 * @throws ScimError `invalidValue` for a member that has no id or is a group. No member is skipped,
 *   because a skipped member would lose or keep access without notice.
 */
export function memberIds(raw: unknown): string[] {
  const members = elementsOf(raw).map((each) => {
    const member = namedMember(each);
    if (isFault(member)) throw member();
    return member;
  });
  if (members.some(({ isGroup }) => isGroup)) {
    throw invalidValue('members', 'are users: a group cannot be in a group');
  }
  return idsOf(members);
}

/** The ids in a list of members to remove, and the fault of the first member that has no id. */
export interface RemovedIds {
  readonly ids: readonly string[];
  readonly fault: ScimError | undefined;
}

/**
 * Reads the ids in a list of group members to remove, without duplicates. Groups in the list are
 * left out, because no group is a member. A member that cannot be read is reported as `fault`. In
 * both cases, the other users in the list must still lose their membership.
 */
export function removedIds(raw: unknown): RemovedIds {
  const read = elementsOf(raw).map(namedMember);
  const members = read.filter((each): each is NamedMember => !isFault(each));
  return { ids: idsOf(members.filter(({ isGroup }) => !isGroup)), fault: read.find(isFault)?.() };
}

/** An element of a list of members: an id, and whether the client says that a group has the id. */
interface NamedMember {
  readonly id: string;
  readonly isGroup: boolean;
}

function elementsOf(raw: unknown): readonly unknown[] {
  if (isEmpty(raw)) return [];
  return Array.isArray(raw) ? raw : [raw];
}

const idsOf = (members: readonly NamedMember[]): string[] => [
  ...new Set(members.map(({ id }) => id)),
];

function namedMember(raw: unknown): NamedMember | ValueFault {
  // A number is no id, although a number is accepted for other texts.
  const isNumbered =
    isObject(raw) &&
    Object.entries(raw).some(
      ([name, part]) => asciiLowerCase(name) === 'value' && typeof part === 'number',
    );
  const parts = MEMBERS && !Array.isArray(raw) && !isNumbered ? partsOrFault(MEMBERS, raw) : [];
  if (isFault(parts)) return parts;
  const [id, type] = ['value', 'type'].map(
    (wanted) => parts.find(([{ name }]) => name === wanted)?.[1],
  );
  if (typeof id !== 'string') return NO_ID;
  if (id.length > MAX_ID) return TOO_LONG;
  return { id, isGroup: typeof type === 'string' && asciiLowerCase(type) === 'group' };
}

const NO_ID: ValueFault = () => invalidValue('members', 'must be a list of {"value": id}');
const TOO_LONG: ValueFault = () => invalidValue('members', 'has an id that is too long');

/**
 * Returns the list of members in the value of an operation with the path `members`. Some clients
 * put the list into an object with the member `members`.
 */
export function listOfMembers(value: unknown): unknown {
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  const [[name, inner] = []] = entries;
  const isWrapped = entries.length === 1 && asciiLowerCase(name ?? '') === 'members';
  return isWrapped && typeof inner === 'object' && inner !== null ? inner : value;
}
