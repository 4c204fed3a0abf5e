import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readProcessEnvironment } from '../config/environment.js';

/**
 * The size in bytes at which the young generation of the heap, which has the newest objects, stops
 * growing. The limit of V8 itself is 128 MiB.
 */
const YOUNG_GENERATION = 64 * 1024 ** 2;

/**
 * The percentage by which the old generation of the heap may grow between two full collections. V8
 * itself would let it grow by up to 300 percent.
 */
const OLD_GROWTH = 60;

type CollectGarbage = (options: { type: 'major'; flavor: 'last-resort' }) => void;

/**
 * Frees the memory that only the start of the process needed. Loading the modules leaves garbage,
 * and makes V8 enlarge its young generation, by about 100 MB in all. This call takes a tenth of a
 * second, once.
 */
export function returnStartUpMemory(): void {
  setFlagsFromString('--expose-gc'); // exposes the collector to the next context only
  const collect = runInNewContext('gc') as CollectGarbage;
  collect({ type: 'major', flavor: 'last-resort' });
}

/**
 * Limits both generations of the heap from now on. V8 takes the maximum of the young generation
 * only when a process starts. Therefore this function sets its growth factor after each collection:
 * 1 (no growth) at the limit, and 2 below it, because a collection on an idle server shrinks the
 * young generation. If an operator passes a size of the young generation to Node, that size counts.
 */
export function limitHeap(): void {
  setFlagsFromString(`--heap-growing-percent=${OLD_GROWTH}`);
  if (/semi[-_]space/.test(optionsOfNode())) return;
  let growth = 2; // the factor of V8
  const observer = new PerformanceObserver(() => {
    const wanted = youngGeneration() < YOUNG_GENERATION ? 2 : 1;
    if (wanted !== growth) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    growth = wanted;
  });
  observer.observe({ entryTypes: ['gc'] });
}

function optionsOfNode(): string {
  return [...process.execArgv, readProcessEnvironment()['NODE_OPTIONS'] ?? ''].join(' ');
}

function youngGeneration(): number {
  const spaces = getHeapSpaceStatistics();
  return spaces.find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
}
