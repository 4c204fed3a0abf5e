import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { loadGuided } from './bundle.js';
import { readCorpus } from './corpus.js';
import { fuzz, type Finding } from './fuzzer.js';
import type { GuidedResult, WorkerTask } from './run-target.js';

// Runs one target in a thread of its own. So the main thread can stop it if an input makes the
// parser hang.
const { file, name, executions, seed, shared } = workerData as WorkerTask;

/**
 * The largest growth of the heap during the second half of a run, in bytes. More growth counts as a
 * memory leak, which is a finding.
 */
const MOST_GROWTH = 48 * 1024 * 1024;

const progress = new Int32Array(shared, 0, 2);
const current = new Uint8Array(shared, 8);

const { target, coverage } = await loadGuided(file);
const start = process.threadCpuUsage();
const heaps: number[] = [];
let runs = 0;
const result = await fuzz(target, {
  executions,
  seed,
  corpus: readCorpus(name),
  coverage,
  before(input) {
    if (runs === Math.floor(executions / 2)) heaps.push(heapAfterCollection());
    runs += 1;
    current.set(input.subarray(0, current.length));
    Atomics.store(progress, 1, Math.min(input.length, current.length));
    Atomics.add(progress, 0, 1);
  },
});
heaps.push(heapAfterCollection());
const { user, system } = process.threadCpuUsage(start);
const growth = (heaps[1] ?? 0) - (heaps[0] ?? 0);
const leaks: Finding[] =
  heaps.length > 1 && growth > MOST_GROWTH
    ? [{ error: `memory grew by ${Math.round(growth / 2 ** 20)} MiB`, input: Buffer.alloc(0) }]
    : [];
const answer: GuidedResult = {
  ...result,
  findings: [...result.findings, ...leaks],
  parser: target.parser,
  blocks: coverage.blocks,
  reached: coverage.reached,
  features: coverage.features,
  seconds: (user + system) / 1e6,
  growth: Math.max(0, growth),
};
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port, not a window
parentPort?.postMessage(answer);

function heapAfterCollection(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
