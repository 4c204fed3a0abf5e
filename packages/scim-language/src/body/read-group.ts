import { ScimError } from '../errors/scim-error.js';
import { type AttributeValue } from '../schema/attribute-value.js';
import { limited } from '../schema/draft.js';
import { checkNew, partsLeftOut, type RefusedPart, type Refuse } from '../schema/refused-part.js';
import { isStorableValue } from '../schema/literal.js';
import { GROUP_SCHEMA } from '../schema/schemas.js';
import { attempt, draftFrom, givenIn, missing, type Given } from './given-attributes.js';
import { memberIds } from './member-ids.js';

/** A group as the body of a request describes it. */
export interface GroupAttributes {
  readonly displayName: string;
  readonly externalId: string | undefined;
  /** The ids of the members of the group, without duplicates. */
  readonly members: readonly string[];
}

/**
 * Parses the body of a POST of a group. A body without `members` means a group without members.
 * @throws ScimError `invalidSyntax` if the name is missing, `invalidValue` if an attribute is wrong
 */
export function readGroup(body: unknown): GroupAttributes {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const given = givenIn(body, { ...GROUP, isNew: true, refuse });
  const hasMembers = given.has('members');
  const { displayName, externalId, members } = groupIn(given, refuse);
  checkNew(refused, hasMembers);
  if (displayName === undefined) throw missing('displayName');
  return { displayName, externalId, members };
}

const GROUP = { resource: GROUP_SCHEMA, critical: 'members' } as const;

/** The state that a PUT demands of a group. */
export interface ReplacedGroup {
  /** The new name; undefined if the name in the body cannot be applied. */
  readonly displayName: string | undefined;
  readonly externalId: string | undefined;
  readonly members: readonly string[];
  /** The parts of the PUT that were not applied; empty unless the PUT ends memberships. */
  readonly leftOut: readonly RefusedPart[];
}

/**
 * Parses the body of a PUT of a group. A PUT without members ends all memberships. If other parts
 * of such a PUT cannot be applied, they are left out, and the PUT is not refused.
 *
 * @param taken the error of an earlier attempt to write this PUT; undefined at the first attempt.
 *   It failed because another group has the same `displayName`
 * @throws ScimError `invalidSyntax` if the name is missing, `invalidValue` if an attribute is wrong
 */
export function readGroupReplacement(body: unknown, taken?: ScimError): ReplacedGroup {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const given = givenIn(body, { ...GROUP, refuse });
  if (!given.has('displayName') && !refused.some(isOf('displayName'))) {
    throw missing('displayName');
  }
  const hasMembers = given.has('members');
  const group = groupIn(given, refuse);
  const isNamed = group.displayName !== undefined || refused.some(isOf('displayName'));
  if (taken || !isNamed) {
    refuse({ kind: 'fault', name: 'displayName', error: taken ?? missing('displayName') });
  }
  // If the body has no `members`, but a name that resembles it, that name may stand for the
  // members.
  const mayHaveMembers = hasMembers ? isOf('members') : mayNameMembers;
  const endsAccess = group.members.length === 0 && !refused.some(mayHaveMembers);
  const leftOut = partsLeftOut(refused, {
    hasCritical: hasMembers,
    endsAccess,
    operations: 1,
    isStorable: isStorableValue(body),
  });
  return { ...group, displayName: taken ? undefined : group.displayName, leftOut };
}

const isOf = (path: string) => (part: RefusedPart) => part.name === path;

function mayNameMembers({ kind, name }: RefusedPart): boolean {
  return kind === 'unclear' || kind === 'lookalike' || name === 'members';
}

/**
 * Reads the attributes of a group. The number of members is not limited, because a service stores
 * each member as a row.
 */
function groupIn(given: Map<string, Given>, refuse: Refuse) {
  const members = attempt(given.get('members'), refuse, ({ raw }) => memberIds(raw)) ?? [];
  given.delete('members');
  const draft = draftFrom(given, refuse);
  const [displayName, externalId] = ['displayName', 'externalId'].map((name) =>
    attempt(given.get(name), refuse, () => groupText(name, draft.get(name))),
  );
  return { displayName, externalId, members };
}

/** Reads a text attribute of a group, and trims the displayName; undefined for an empty text. */
export function groupText(path: string, value: AttributeValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = path === 'displayName' ? value.trim() : value;
  return text === '' ? undefined : limited(path, text);
}
