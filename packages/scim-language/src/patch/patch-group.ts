import { asciiLowerCase } from '../text/ascii.js';
import { ScimError } from '../errors/scim-error.js';
import { invalidValue, isEmpty, readSimple } from '../schema/attribute-value.js';
import type { Filter } from '../filter/filter.js';
import { isWritable } from '../schema/draft.js';
import { listOfMembers, memberIds, removedIds } from '../body/member-ids.js';
import { partsLeftOut, type RefusedPart, type Refuse } from '../schema/refused-part.js';
import { refusedPart } from '../schema/written-user.js';
import {
  areStorable,
  changesOf,
  type AttributeChange,
  type PatchOperation,
} from './patch-operations.js';
import { groupText } from '../body/read-group.js';
import { GROUP_SCHEMA } from '../schema/schemas.js';

/** A change of the members of a group, by their ids. */
export type MemberChange =
  | { readonly kind: 'add' | 'remove' | 'replace'; readonly ids: readonly string[] }
  | { readonly kind: 'clear' };

/** The changes of a group by a PATCH, which are applied without loading the group. */
export interface GroupPatch {
  /** The attributes to set; `null` removes an `externalId`. */
  readonly set: { readonly displayName?: string; readonly externalId?: string | null };
  /** The changes of the members, in the order in which they must be applied. */
  readonly members: readonly MemberChange[];
  readonly endsAccess: boolean;
  readonly leftOut: readonly RefusedPart[];
}

/**
 * Converts PATCH operations to changes of a group, without loading the group. If an operation
 * cannot be applied, the whole PATCH fails. But if another operation removes members, the faulty
 * operation is only left out, because access must end.
 *
 * @param taken the error of an earlier attempt to write this PATCH, which failed because another
 *   group has the same `displayName`
 * @throws ScimError in the cases of {@link patchUser}
 */
export function patchGroup(operations: readonly PatchOperation[], taken?: ScimError): GroupPatch {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const set: { displayName?: string; externalId?: string | null } = {};
  const members: MemberChange[] = [];
  let hasMembers = false;
  const apply = (change: AttributeChange) => {
    const { path } = change.path.target;
    if (path === 'displayName') {
      if (taken) throw taken;
      set.displayName = newName(change);
    } else if (path === 'externalId') set.externalId = newText(change) ?? null;
    else {
      members.push(...memberChanges(change, refuse));
      hasMembers = true;
    }
  };
  for (const change of operations.flatMap((each) => changesOf(each, { ...GROUP, refuse }))) {
    const { target } = change.path;
    try {
      if (isWritable(target)) apply(change);
    } catch (error) {
      refuse(refusedPart(target, error));
    }
  }
  const endsAccess = members.some(({ kind }) => kind === 'remove' || kind === 'clear');
  const understood = {
    hasCritical: hasMembers,
    endsAccess,
    operations: operations.length,
    isStorable: areStorable(operations),
  };
  return { set, members, endsAccess, leftOut: partsLeftOut(refused, understood) };
}

const GROUP = { resource: GROUP_SCHEMA, critical: 'members' } as const;

function newName(change: AttributeChange): string {
  const name = newText(change);
  if (name === undefined) throw invalidValue('displayName', 'must have a value');
  return name;
}

function newText({ op, path: { target }, value }: AttributeChange): string | undefined {
  const text = op === 'remove' ? undefined : readSimple(target.attribute, value);
  return groupText(target.path, text);
}

function memberChanges(
  { op, path: { target, filter }, value: raw }: AttributeChange,
  refuse: Refuse,
): MemberChange[] {
  if (target.sub || (filter && op !== 'remove')) {
    throw new ScimError(
      'invalidPath',
      'Members can be added, replaced and removed as a whole only.',
    );
  }
  if (filter) return [removal(filter)];
  const value = listOfMembers(raw);
  if (op === 'add') return listed('add', memberIds(value));
  if (op === 'replace')
    return isEmpty(value) ? [{ kind: 'clear' }] : listed('replace', memberIds(value));
  // Without a value all members are removed (RFC 7644 §3.5.2.2); with an empty list, no member is.
  if (value === undefined || value === null) return [{ kind: 'clear' }];
  if (value === '') throw invalidValue('members', 'must be a list of {"value": id}');
  const { ids, fault } = removedIds(value);
  if (fault) refuse(refusedPart(target, fault));
  return listed('remove', ids);
}

function listed(kind: 'add' | 'replace' | 'remove', ids: readonly string[]): MemberChange[] {
  return ids.length === 0 ? [] : [{ kind, ids }];
}

/**
 * Converts a filter on members to the removal of members. Members can be chosen by their ids only,
 * so that none has to be loaded.
 */
function removal(filter: Filter): MemberChange {
  const ids = (filter.kind === 'or' ? filter.operands : [filter]).flatMap(idsIn);
  return { kind: 'remove', ids: [...new Set(ids)] };
}

/**
 * Returns the ids in a condition on members: `value eq "id"`, optionally with `type eq "User"`,
 * which is true for every member.
 */
function idsIn(filter: Filter): string[] {
  const conditions = filter.kind === 'and' ? filter.operands : [filter];
  const values = conditions.filter((condition) => isEqual(condition, 'value'));
  const types = conditions.filter((condition) => isEqual(condition, 'type'));
  const [id] = values;
  if (!id || values.length > 1 || values.length + types.length < conditions.length) {
    throw new ScimError('invalidFilter', 'Members are chosen by value eq "id" only.');
  }
  const areUsers = types.every(({ value }) => asciiLowerCase(String(value)) === 'user');
  return areUsers ? [String(id.value)] : [];
}

function isEqual(filter: Filter, sub: string): filter is Extract<Filter, { kind: 'compare' }> {
  return filter.kind === 'compare' && filter.operator === 'eq' && filter.target.sub?.name === sub;
}
