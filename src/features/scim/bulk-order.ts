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
  const makers = new Map(
    waiting.filter(makesUser).map((operation) => [madeAs(operation), operation]),
  );
  return waiting.find((operation) => {
    const seen = new Set<string>();
    const pending = makesUser(operation) ? [...(references.get(operation) ?? [])] : [];
    for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
      if (id === madeAs(operation)) return true;
      const maker = seen.has(id) ? undefined : makers.get(id);
      seen.add(id);
      if (maker) pending.push(...(references.get(maker) ?? []));
    }
    return false;
  });
}
