import { GROUP_ATTRIBUTES } from './attributes/group-schema.js';
import { invalidValue, isEmpty, readParts } from './attribute-value.js';

const MEMBERS = GROUP_ATTRIBUTES.find(({ name }) => name === 'members');
const MAX_ID = 512;

/**
 * The ids in a list of members, each once: of objects their `value`, or the strings themselves. Whether there are such
 * users is for whoever loads them to say.
 * @throws DomainError `invalid_value` for one without an id: a member that was not understood is never skipped
 */
export function memberIds(raw: unknown): string[] {
  if (isEmpty(raw)) return [];
  const each: readonly unknown[] = Array.isArray(raw) ? raw : [raw];
  return [...new Set(each.map(memberId))];
}

function memberId(raw: unknown): string {
  const parts = MEMBERS && !Array.isArray(raw) ? readParts(MEMBERS, raw) : [];
  const id = parts.find(([{ name }]) => name === 'value')?.[1];
  if (typeof id !== 'string') throw invalidValue('members', 'must be a list of {"value": id}');
  if (id.length > MAX_ID) throw invalidValue('members', 'has an id that is too long');
  return id;
}
