import { asciiLowerCase } from '../text/ascii.js';
import { isObject } from './attribute-value.js';
import { booleanOf } from './literal.js';
import type { ResourceSchema, Schema } from './schemas.js';

/**
 * The critical attribute of a resource. A write with a reference to it that is not understood must
 * be refused. Ignoring an unparsable reference to `active` could leave a user enabled; a lost
 * reference to `members` could leave a user in a group.
 */
export type CriticalAttribute = 'active' | 'members';

/**
 * Returns true if a name, path or URN refers to the attribute: `active.value`, `urn:x:y:active`,
 * `$active`.
 */
export function refersTo(critical: CriticalAttribute, name: string): boolean {
  return asciiLowerCase(name)
    .split(/[^a-z0-9_-]/)
    .includes(critical);
}

/** Returns true if a value has a key, at any depth, that refers to the attribute. */
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

/** Matches unknown names that may mean the critical attribute. */
const LOOKALIKES: Readonly<Record<CriticalAttribute, RegExp>> = {
  active: /^act|activ|enabl|disab|suspend|lock|status/,
  members: /member/,
};

/**
 * Returns true if an unknown attribute may mean the critical one: `accountEnabled: "False"`,
 * `actve: false`. A name that resembles `active` counts only with a boolean, because a status may
 * be any text.
 */
export function resembles(critical: CriticalAttribute, name: string, value: unknown): boolean {
  const local = asciiLowerCase(name).replace(/^urn:.*:/, '');
  const names = [local, ...local.split(/[^a-z0-9_-]/)];
  if (!names.some((each) => LOOKALIKES[critical].test(each))) return false;
  return critical === 'members' || readsAsBoolean(value);
}

/** Returns true if a value is a boolean, or is a list or an object whose `value` is one. */
function readsAsBoolean(raw: unknown): boolean {
  if (Array.isArray(raw)) return raw.length === 1 && readsAsBoolean((raw as unknown[])[0]);
  if (!isObject(raw)) return booleanOf(raw) !== undefined;
  return Object.entries(raw).some(
    ([key, value]) => asciiLowerCase(key) === 'value' && booleanOf(value) !== undefined,
  );
}

/**
 * Returns true if a name begins with the URN of an unknown schema. Such names are harmless, because
 * clients send their own extensions to every service.
 */
export function isForeign(name: string, { core, extensions }: ResourceSchema): boolean {
  const lower = asciiLowerCase(name);
  const isOurs = ({ id }: Schema) =>
    lower.startsWith(asciiLowerCase(id)) && /^[:.]|^$/.test(lower.slice(id.length));
  return lower.startsWith('urn:') && ![core, ...extensions].some(isOurs);
}
