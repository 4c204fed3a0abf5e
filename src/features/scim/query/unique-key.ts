import type { Filter } from '../language/scim-language.js';

/**
 * The attributes, by their paths, that have unique values among the resources of an organization,
 * each with the SQL expression of its unique index. The expression joins the id of the organization
 * and the value in lower case to one text. `id` needs no expression, because it is the primary key.
 */
export type UniqueKeys = Readonly<Record<string, string | undefined>>;

/** A comparison in a SCIM filter, such as `userName eq "ada"`. */
export type Comparison = Extract<Filter, { kind: 'compare' }>;

/**
 * Returns true if a search can find only one resource, because it compares the key of a unique
 * index.
 */
export function isOfOne(
  { filter }: { readonly filter: Filter | undefined },
  unique: UniqueKeys,
): boolean {
  return filter !== undefined && keyOf(filter, (path) => Object.hasOwn(unique, path)) !== undefined;
}

/**
 * Finds a comparison `key eq value` that every match of a filter meets; undefined if there is none.
 */
export function keyOf(filter: Filter, isKey: (path: string) => boolean): Comparison | undefined {
  if (filter.kind === 'and') {
    for (const operand of filter.operands) {
      const key = keyOf(operand, isKey);
      if (key) return key;
    }
  }
  if (filter.kind === 'element') return keyOf(filter.where, isKey);
  const isEqual = filter.kind === 'compare' && filter.operator === 'eq';
  return isEqual && isKey(filter.target.path) ? filter : undefined;
}
