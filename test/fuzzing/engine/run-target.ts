import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { BIGGEST_INPUT, TARGETS, type TargetName } from '../targets.js';
import type { FuzzResult } from './fuzzer.js';

/** The time in milliseconds without an execution after which the parser counts as hanging. */
const HANG_MS = 30_000;
const HEAP_MB = 768;

/**
 * The task of a thread that runs one target. `shared` has the number of executions so far (4
 * bytes), the length of the current input (4 bytes), and the input itself.
 */
export interface WorkerTask {
  readonly name: TargetName;
  readonly file: string;
  readonly executions: number;
  readonly seed: number;
  readonly shared: SharedArrayBuffer;
}

/** The result of a run that is guided by coverage. */
export interface GuidedResult extends FuzzResult {
  readonly parser: string;
  /** The number of blocks in the code of the parser and its libraries. */
  readonly blocks: number;
  readonly reached: number;
  readonly features: number;
  /** The CPU time of the thread, in seconds, without that of bundling. */
  readonly seconds: number;
  /** The bytes by which the heap grew during the second half of the run. */
  readonly growth: number;
}

/**
 * Runs a target, guided by coverage, in a thread of its own.
 *
 * @returns the result of the run; if the parser hangs or ends the thread, a result with that as a
 * finding
 */
export async function runTarget(
  name: TargetName,
  { executions, seed }: Pick<WorkerTask, 'executions' | 'seed'>,
): Promise<GuidedResult> {
  const shared = new SharedArrayBuffer(8 + BIGGEST_INPUT);
  const task: WorkerTask = { name, file: TARGETS[name], executions, seed, shared };
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  const progress = new Int32Array(shared, 0, 2);
  const hang = watched(progress);
  try {
    const answer = once(worker, 'message').then(([result]) => result as GuidedResult);
    return await Promise.race([answer, hang.promise]);
  } catch (error) {
    const input = Buffer.from(new Uint8Array(shared, 8, Atomics.load(progress, 1)).slice());
    return failedResult(name, Atomics.load(progress, 0), { error: String(error), input });
  } finally {
    hang.stop();
    await worker.terminate();
  }
}

/**
 * Watches the number of executions in `progress`. The promise rejects if the number stays the same
 * for {@link HANG_MS}, or before the first execution for ten times as long.
 */
function watched(progress: Int32Array): { promise: Promise<never>; stop: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  let last = -1;
  let since = performance.now();
  const timer = setInterval(() => {
    const executions = Atomics.load(progress, 0);
    if (executions !== last) since = performance.now();
    last = executions;
    // Before the first execution, the thread bundles the target, which may take longer.
    const limit = executions === 0 ? 10 * HANG_MS : HANG_MS;
    if (performance.now() - since > limit) reject(new Error(`no answer for ${limit / 1000} s`));
  }, 500);
  return { promise, stop: () => clearInterval(timer) };
}

function failedResult(
  parser: string,
  executions: number,
  finding: GuidedResult['findings'][number],
): GuidedResult {
  const nothing = { accepted: 0, corpus: [], blocks: 0, reached: 0, features: 0 };
  return { parser, executions, findings: [finding], ...nothing, seconds: 0, growth: 0 };
}
