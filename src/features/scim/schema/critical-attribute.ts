import { asciiLowerCase } from '#platform/text/single-line.js';

/**
 * The attribute of a resource of which every mention must be understood: a server that shrugs at what was meant for it
 * leaves somebody with access they should not have.
 */
export type CriticalAttribute = 'active' | 'members';

/** Whether a name, a path or a URN has the attribute among its parts: `active.value`, `urn:x:y:active`, `$active`. */
export function refersTo(critical: CriticalAttribute, name: string): boolean {
  return asciiLowerCase(name)
    .split(/[^a-z0-9_-]/)
    .includes(critical);
}

/** Whether anything within a value, however deep, has such a name. */
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
