import { asciiLowerCase } from '../text/ascii.js';
import { isObject } from './attribute-value.js';
import { booleanOf } from './literal.js';
import type { ResourceSchema, Schema } from './schemas.js';

/**
 * The critical attribute of a resource: `active` of a user, `members` of a group. A write with a
 * reference to it that is not understood must be refused. If a faulty reference to `active` were
 * ignored, a user could stay enabled. If a faulty reference to `members` were ignored, a user could
 * stay in a group.
 */
export type CriticalAttribute = 'active' | 'members';

/**
 * Returns true if a name, path or URN contains the name of the critical attribute: `active.value`,
 * `urn:x:y:active`, `$active`.
 */
export function refersTo(critical: CriticalAttribute, name: string): boolean {
  return asciiLowerCase(name)
    .split(/[^a-z0-9_-]/)
    .includes(critical);
}

/**
 * Returns true if an object in a value, at any depth, has a property whose name refers to the
 * critical attribute ({@link refersTo}). The write can then be refused.
 */
export function containsReferenceTo(critical: CriticalAttribute, value: unknown): boolean {
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== 'object' || next === null) continue;
    const isList = Array.isArray(next);
    for (const [name, inner] of Object.entries(next) as [string, unknown][]) {
      if (!isList && refersTo(critical, name)) return true;
      pending.push(inner);
    }
  }
  return false;
}

/** Matches unknown names that a client may have written for the critical attribute. */
const LOOKALIKES: Readonly<Record<CriticalAttribute, RegExp>> = {
  active: /^act|activ|enabl|disab|suspend|lock|status/,
  members: /member/,
};

/**
 * Returns true if an unknown attribute may be meant as the critical attribute: `accountEnabled:
 * "False"`, `actve: false`. A name that resembles `active` counts only with a boolean, because a
 * status may be any text.
 */
export function resembles(critical: CriticalAttribute, name: string, value: unknown): boolean {
  const local = asciiLowerCase(name).replace(/^urn:.*:/, '');
  const names = [local, ...local.split(/[^a-z0-9_-]/)];
  if (!names.some((each) => LOOKALIKES[critical].test(each))) return false;
  return critical === 'members' || readsAsBoolean(value);
}

/**
 * Returns true if a value is a boolean, a list that has a boolean as its only element, or an object
 * whose `value` is a boolean.
 */
function readsAsBoolean(raw: unknown): boolean {
  if (Array.isArray(raw)) return raw.length === 1 && readsAsBoolean((raw as unknown[])[0]);
  if (!isObject(raw)) return booleanOf(raw) !== undefined;
  return Object.entries(raw).some(
    ([key, value]) => asciiLowerCase(key) === 'value' && booleanOf(value) !== undefined,
  );
}

/**
 * Returns true if a name begins with the URN of an unknown schema. Clients send their own
 * extensions to every service, so that such a name means no attribute of this service.
 */
export function isForeign(name: string, { core, extensions }: ResourceSchema): boolean {
  const lower = asciiLowerCase(name);
  const isOurs = ({ id }: Schema) =>
    lower.startsWith(asciiLowerCase(id)) && /^[:.]|^$/.test(lower.slice(id.length));
  return lower.startsWith('urn:') && ![core, ...extensions].some(isOurs);
}
