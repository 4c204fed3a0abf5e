import { ScimError } from '../errors/scim-error.js';
import { GROUP_ATTRIBUTES } from '../schema/attributes/user-and-group-attributes.js';
import { asciiLowerCase } from '../text/ascii.js';
import { invalidValue, isEmpty, isObject, readParts } from '../schema/attribute-value.js';

const MEMBERS = GROUP_ATTRIBUTES.find(({ name }) => name === 'members');
const MAX_ID = 512;

/**
 * Reads the ids in a list of group members, without duplicates: the `value` of each object, or the
 * string itself. Whether the ids exist is not checked here.
 * @throws ScimError `invalidValue` for a member without an id, or for a group. No member is
 *   skipped, because a skipped member would lose or keep access without notice.
 */
export function memberIds(raw: unknown): string[] {
  const members = elementsOf(raw).map(namedMember);
  if (members.some(({ isGroup }) => isGroup)) {
    throw invalidValue('members', 'are users: a group cannot be in a group');
  }
  return idsOf(members);
}

/** The ids in a list of members to remove, and the fault of the first one that has none. */
export interface RemovedIds {
  readonly ids: readonly string[];
  readonly fault: ScimError | undefined;
}

/**
 * Reads the ids in a list of group members to remove, without duplicates. Groups in the list are
 * left out, because no group is a member, and the others must lose their membership all the same.
 * So must they beside a member that cannot be read.
 */
export function removedIds(raw: unknown): RemovedIds {
  const faults: ScimError[] = [];
  const members = elementsOf(raw).flatMap((each) => {
    try {
      return namedMember(each);
    } catch (error) {
      if (!(error instanceof ScimError)) throw error;
      faults.push(error);
      return [];
    }
  });
  return { ids: idsOf(members.filter(({ isGroup }) => !isGroup)), fault: faults[0] };
}

/** An element of a list of members: an id, and whether the client calls it that of a group. */
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

function namedMember(raw: unknown): NamedMember {
  // A number is no id, although a number is accepted for other texts.
  const isNumbered =
    isObject(raw) &&
    Object.entries(raw).some(
      ([name, part]) => asciiLowerCase(name) === 'value' && typeof part === 'number',
    );
  const parts = MEMBERS && !Array.isArray(raw) && !isNumbered ? readParts(MEMBERS, raw) : [];
  const [id, type] = ['value', 'type'].map(
    (wanted) => parts.find(([{ name }]) => name === wanted)?.[1],
  );
  if (typeof id !== 'string') throw invalidValue('members', 'must be a list of {"value": id}');
  if (id.length > MAX_ID) throw invalidValue('members', 'has an id that is too long');
  return { id, isGroup: typeof type === 'string' && asciiLowerCase(type) === 'group' };
}

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
