import type { AuditPlace } from '#domain/audit/audit-filter.js';

/** A part of a list, the newest first, with the place after which the next part begins. */
export interface OwnPage<Item> {
  readonly items: readonly Item[];
  readonly next: AuditPlace | null;
}

/**
 * Cuts a page out of events.
 *
 * @param found one event more than the page has, if there is another page
 */
export function pageOf<Event extends { readonly place: AuditPlace }>(
  found: readonly Event[],
  limit: number,
): OwnPage<Event> {
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (items.at(-1)?.place ?? null) : null };
}
