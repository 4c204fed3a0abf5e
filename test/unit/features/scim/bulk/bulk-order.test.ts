import { expect, it } from 'vitest';
import { firstOfCircle } from '../../../../../src/features/scim/bulk/bulk-order.js';
import type { BulkOperation } from '../../../../../src/features/scim/bulk/bulk-request.js';

const user = (bulkId: string, path = '/Users'): BulkOperation => ({
  method: 'POST',
  bulkId,
  path,
  version: undefined,
  data: {},
});

/** Returns the first user of a circle. Each user is given with the users to which it refers. */
function firstOf(waitFor: Readonly<Record<string, readonly string[]>>): string | undefined {
  const operations = Object.keys(waitFor).map((id) => user(id));
  const references = new Map(operations.map((one) => [one, waitFor[one.bulkId ?? ''] ?? []]));
  return firstOfCircle(operations, references)?.bulkId;
}

it.each([
  ['of itself alone', { a: ['b'], b: ['b'] }, 'b'],
  ['of two', { a: ['b'], b: ['a'] }, 'a'],
  ['behind one that only waits for it', { a: ['b'], b: ['c'], c: ['b'] }, 'b'],
  ['over three, with a side that ends', { a: ['x', 'b'], b: ['c'], c: ['a'], x: ['gone'] }, 'a'],
  ['of two circles the first', { a: ['c'], b: ['d'], c: ['e'], d: ['b'], e: ['c'] }, 'b'],
] as const)('10.19 finds a circle %s', (_, waitFor, first) => {
  expect(firstOf(waitFor)).toBe(first);
});

it('10.19 finds no circle in an order without one, or across a group', () => {
  expect(firstOf({ a: ['b', 'c'], b: ['c'], c: ['gone'] })).toBeUndefined();
  const [group, member] = [user('g', '/Groups'), user('u')];
  const references = new Map([
    [group, ['u']],
    [member, ['g']],
  ]);
  expect(firstOfCircle([group, member], references)).toBeUndefined();
});

it('10.19 reads the references of each operation once, however many there are', () => {
  const operations = Array.from({ length: 1000 }, (_, n) => user(`u${n}`));
  let reads = 0;
  const references = new (class extends Map<BulkOperation, readonly string[]> {
    override get(operation: BulkOperation) {
      reads += 1;
      return super.get(operation);
    }
  })();
  for (const [n, operation] of operations.entries()) {
    references.set(
      operation,
      Array.from({ length: 50 }, (_, k) => `u${n + k + 1}`),
    );
  }
  references.set(operations[999] ?? user(''), ['u998']);
  expect(firstOfCircle(operations, references)?.bulkId).toBe('u998');
  expect(reads).toBe(1000);
});
