import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readProcessEnvironment } from '../config/environment.js';

/** Bytes. The size at which the young generation stops growing. The limit of V8 is 128 MiB. */
const YOUNG_GENERATION = 64 * 1024 ** 2;

/**
 * Percent. The growth of the old generation between two full collections, relative to its size
 * after the first one. V8 would let it grow by up to 300 percent.
 */
const OLD_GROWTH = 60;

type CollectGarbage = (options: { type: 'major'; flavor: 'last-resort' }) => void;

/**
 * Frees the memory of the start. Loading the modules leaves garbage, and makes V8 enlarge its young
 * generation, by about 100 MB that no request needs. This call takes a tenth of a second, once.
 */
export function returnStartUpMemory(): void {
  setFlagsFromString('--expose-gc'); // exposes the collector to the next context only
  const collect = runInNewContext('gc') as CollectGarbage;
  collect({ type: 'major', flavor: 'last-resort' });
}

/**
 * Limits both generations of the heap from now on. V8 reads the largest size of the young
 * generation only when the process starts, but it reads the factor of its growth at each
 * collection. So after each collection this sets the factor to 1 if the young generation has
 * reached {@link YOUNG_GENERATION}, and back to 2 if it is smaller, because V8 shrinks it on an
 * idle server. If an operator sets the size of the young generation by an option of Node, only the
 * old generation is limited here.
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
