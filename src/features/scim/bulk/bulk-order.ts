import type { BulkOperation } from './bulk-request.js';

/**
 * The bulkIds to which each operation of a bulk request refers. A bulkId is the name of a new
 * resource inside one request.
 */
export type References = ReadonlyMap<BulkOperation, readonly string[]>;

/**
 * Returns the bulkId of the resource that an operation creates; undefined for an operation that
 * creates no resource.
 */
export function madeAs({ method, bulkId }: BulkOperation): string | undefined {
  return method === 'POST' ? bulkId : undefined;
}

/**
 * Finds the POST operations without a bulkId, or with the bulkId of an earlier POST. RFC 7644 §3.7
 * requires a bulkId of its own for each POST.
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

/**
 * Returns true if an operation creates a user. A user, unlike a group, can get an id that was
 * chosen before the creation.
 */
const makesUser = (operation: BulkOperation): boolean =>
  madeAs(operation) !== undefined && /^\/users$/i.test(operation.path);

/**
 * Returns the first waiting operation on a circle of references, such as one of two new users who
 * are each other's manager (RFC 7644 §3.7.1); undefined if there is none. This operation can run
 * before the users to which it refers are created, because the ids of users can be chosen in
 * advance.
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
 * Finds the operations on circles of references, by Tarjan's algorithm for strongly connected
 * components. It reads each reference only once, because a client may send very many, and all other
 * requests wait meanwhile.
 */
function inCircles(
  makers: ReadonlyMap<string | undefined, BulkOperation>,
  references: References,
): ReadonlySet<BulkOperation> {
  const found = new Set<BulkOperation>();
  const visited = new Map<BulkOperation, number>();
  const open: BulkOperation[] = [];
  const isOpen = new Set<BulkOperation>();
  /**
   * Visits an operation and the operations to which it refers. Operations are numbered in the order
   * of their visits.
   *
   * @returns the lowest number found among the operations that this one reaches and that belong to
   *   no finished component yet
   */
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
