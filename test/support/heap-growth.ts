import { setImmediate as nextTurn } from 'node:timers/promises';
import { getHeapCodeStatistics, getHeapSpaceStatistics } from 'node:v8';
import { runInNewContext, runInThisContext } from 'node:vm';
import { prepareHeap } from '#platform/heap/heap.js';

// A script for runScript: fills the heap, collects all garbage as production does after its start,
// and fills the heap again. It prints the size of V8's young generation after each step.
const ofStart = callFunctions();
const loaded = await load();
const code = { loaded: bytesOfCode(), idle: 0, called: 0, later: 0 };
prepareHeap();
const idle = youngGeneration();
code.idle = bytesOfCode();
const called = callFunctions();
code.called = bytesOfCode() - code.idle;
// The same collection as that of the start, but with the settings that it has left.
(runInNewContext('gc') as (options: object) => void)({ type: 'major', flavor: 'last-resort' });
code.later = bytesOfCode() - code.idle;
const functions = [ofStart, called].map(({ length }) => length);
const answer: HeapGrowthAnswer = { loaded, idle, again: await load(), code, functions };
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

/** Compiles functions and calls each once. Returns them, so that they stay in memory. */
function callFunctions(): readonly unknown[] {
  return Array.from({ length: 5000 }, (_, n) => {
    const act = runInThisContext(`(x) => x + ${n} + ${Math.random()}`) as (x: number) => number;
    act(n);
    return act;
  });
}

/** The bytes of the compiled code of functions. */
function bytesOfCode(): number {
  return getHeapCodeStatistics().bytecode_and_metadata_size;
}

function youngGeneration(): number {
  const spaces = getHeapSpaceStatistics();
  return spaces.find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
}

/** The output of the script: sizes of the young generation, in bytes, and of compiled code. */
export interface HeapGrowthAnswer {
  readonly loaded: number;
  readonly idle: number;
  readonly again: number;
  /**
   * The bytes of compiled code before and after the call of `prepareHeap`, and those of functions
   * that were called later, before and after one more collection.
   */
  readonly code: Readonly<Record<'loaded' | 'idle' | 'called' | 'later', number>>;
  /** The numbers of functions that were called before and after the call of `prepareHeap`. */
  readonly functions: readonly number[];
}
