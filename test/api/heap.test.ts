import { describe, expect, it } from 'vitest';
import { runScript } from '../support/child-script.js';
import type { HeapGrowthAnswer } from '../support/heap-growth.js';

const MIB = 1024 ** 2;

/** Runs a process that puts load on its heap, and returns what it measured. */
async function heapGrowth(): Promise<HeapGrowthAnswer> {
  const script = runScript<HeapGrowthAnswer>('heap-growth.ts', {});
  const answer = await script.answer;
  await script.finish();
  return answer;
}

describe('the young generation of the heap', () => {
  it('is large after a load, small once its memory is given back, and large again', async () => {
    const { loaded, idle, again } = await heapGrowth();
    expect(loaded).toBeGreaterThan(32 * MIB);
    expect(idle).toBeLessThan(8 * MIB);
    expect(again).toBeGreaterThan(32 * MIB);
  });
});
