import { asciiLowerCase } from '#platform/text/single-line.js';

/**
 * The critical attribute of a resource: every reference to it must be understood or refused. Ignoring an unparsable
 * reference to `active` could leave a user enabled; a lost reference to `members` could leave a user in a group.
 */
export type CriticalAttribute = 'active' | 'members';

/** Tells whether a name, path or URN refers to the attribute: `active.value`, `urn:x:y:active`, `$active`. */
export function refersTo(critical: CriticalAttribute, name: string): boolean {
  return asciiLowerCase(name)
    .split(/[^a-z0-9_-]/)
    .includes(critical);
}

/** Tells whether a value contains a key, at any depth, that refers to the attribute. */
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
