import { setImmediate as nextTurn } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { prepareHeap } from '#platform/heap/heap.js';

// A script for runScript: fills the heap, collects all garbage as production does after its start,
// and fills the heap again. It prints the size of V8's young generation after each step.
const loaded = await load();
prepareHeap();
const idle = youngGeneration();
const answer: HeapGrowthAnswer = { loaded, idle, again: await load() };
process.stdout.write(`${JSON.stringify(answer)}\n`);

/**
 * Allocates objects in short turns of the event loop, and keeps the newest ones for 100 turns, as
 * the handling of requests does. Returns the size of the young generation.
 */
async function load(): Promise<number> {
  const alive: object[][] = [];
  for (let turn = 0; turn < 1000; turn += 1) {
    alive.push(Array.from({ length: 10_000 }, (_, n) => ({ turn, n })));
    if (alive.length > 100) alive.shift();
    await nextTurn();
  }
  return youngGeneration();
}

function youngGeneration(): number {
  const spaces = getHeapSpaceStatistics();
  return spaces.find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
}

/** The output of the script: sizes of the young generation in bytes. */
export interface HeapGrowthAnswer {
  readonly loaded: number;
  readonly idle: number;
  readonly again: number;
}
