import type { AuditPlace } from '#domain/audit/audit-filter.js';

/**
 * A page of a list, the newest item first. `next` is the position after which the next page begins;
 * it is null on the last page.
 */
export interface OwnPage<Item> {
  readonly items: readonly Item[];
  readonly next: AuditPlace | null;
}

/**
 * Cuts the events that were read to one page.
 *
 * @param found the events that were read: one more than `limit` if there is another page
 */
export function pageOf<Event extends { readonly place: AuditPlace }>(
  found: readonly Event[],
  limit: number,
): OwnPage<Event> {
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (items.at(-1)?.place ?? null) : null };
}
