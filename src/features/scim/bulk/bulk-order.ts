import type { BulkOperation } from './bulk-request.js';

/** The operations of a bulk request that refer to each other, and what each of them waits for. */
export type References = ReadonlyMap<BulkOperation, readonly string[]>;

/** The bulkId under which others refer to what an operation makes; undefined where it makes nothing. */
export function madeAs({ method, bulkId }: BulkOperation): string | undefined {
  return method === 'POST' ? bulkId : undefined;
}

/**
 * The operations that make something and have no bulkId of their own: none, or that of an earlier one (RFC 7644 §3.7: the
 * client must give each POST one).
 */
export function withoutOwnId(operations: readonly BulkOperation[]): ReadonlySet<BulkOperation> {
  const known = new Set<string>();
  const refused = new Set<BulkOperation>();
  for (const operation of operations) {
    if (operation.method !== 'POST') continue;
    const { bulkId = '' } = operation;
    if (bulkId === '' || known.has(bulkId)) refused.add(operation);
    known.add(bulkId);
  }
  return refused;
}

/** Whether an operation makes a user, whose id can be told before it is made. */
const makesUser = (operation: BulkOperation): boolean =>
  madeAs(operation) !== undefined && /^\/users$/i.test(operation.path);

/**
 * An operation that waits for itself, over others or alone, and can be the first of its circle (RFC 7644 §3.7.1). Only users
 * refer to users, so that a circle is one of managers.
 */
export function firstOfCircle(
  waiting: readonly BulkOperation[],
  references: References,
): BulkOperation | undefined {
  const makers = new Map<string | undefined, BulkOperation>();
  for (const operation of waiting) {
    const id = madeAs(operation);
    if (makesUser(operation) && !makers.has(id)) makers.set(id, operation);
  }
  const circles = inCircles(makers, references);
  return waiting.find((operation) => circles.has(operation));
}

/**
 * The operations on circles: Tarjan's strongly connected components. It reads each reference once, since a client may write very
 * many, and nothing else runs meanwhile.
 */
function inCircles(
  makers: ReadonlyMap<string | undefined, BulkOperation>,
  references: References,
): ReadonlySet<BulkOperation> {
  const found = new Set<BulkOperation>();
  const visited = new Map<BulkOperation, number>();
  const open: BulkOperation[] = [];
  const isOpen = new Set<BulkOperation>();
  /** @returns the earliest open operation that it leads to, by the order of the visits */
  const visit = (operation: BulkOperation): number => {
    const place = visited.size;
    let earliest = place;
    visited.set(operation, place);
    isOpen.add(operation);
    const from = open.push(operation) - 1;
    for (const id of references.get(operation) ?? []) {
      const next = makers.get(id);
      if (!next) continue;
      if (next === operation) found.add(next);
      const known = visited.get(next);
      if (known === undefined) earliest = Math.min(earliest, visit(next));
      else if (isOpen.has(next)) earliest = Math.min(earliest, known);
    }
    if (earliest < place) return earliest;
    const component = open.splice(from);
    for (const one of component) {
      isOpen.delete(one);
      if (component.length > 1) found.add(one);
    }
    return earliest;
  };
  for (const operation of makers.values()) if (!visited.has(operation)) visit(operation);
  return found;
}
