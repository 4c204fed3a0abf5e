import type { ReadConfiguration } from '#entry/read-configuration.js';
import { argumentsOfService, requireNode } from './node-version.js';
import {
  endAtEarlySignals,
  isWorker,
  keepCompiledCode,
  outliveHangUps,
  runOrExit,
} from './start.js';
import type { Worker } from '#entry/worker.js';

requireNode();
outliveHangUps();
// A worker needs no handler for early signals, because the primary process ends its workers.
if (!isWorker) endAtEarlySignals();
const given = argumentsOfService('main.js');
keepCompiledCode();
await runOrExit(isWorker ? work : begin);

/** Starts the service in this process, or its workers if the configuration has several. */
async function begin(): Promise<void> {
  const { readConfiguration } = await import('#entry/read-configuration.js');
  // The configuration is read first, so that its errors are reported before other modules are
  // loaded.
  const read = await readConfiguration(given);
  if (read.config.workers === 1) return serve(read);
  const { runWorkers } = await import('#entry/primary.js');
  return runWorkers(read, 'production');
}

/** Starts the service in a worker, with the configuration that the primary process read. */
async function work(): Promise<void> {
  const { receiveTask } = await import('#entry/worker.js');
  const worker = await receiveTask();
  await serve(worker.read, worker);
}

async function serve(read: ReadConfiguration, worker?: Worker): Promise<void> {
  const { startTracing } = await import('#entry/tracing.js');
  // Tracing starts first, because only modules that are loaded after this call can be traced.
  const tracing = await startTracing(read.config.tracing, worker?.number);
  const { startProduction } = await import('#entry/production.js');
  await startProduction(read, tracing, worker);
}
