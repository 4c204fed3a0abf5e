import {
  configurationFrom,
  type ReadConfiguration,
} from '#platform/config-sources/read-configuration.js';
import type { PreparedDatabase } from '#platform/database/open-database.js';
import type {
  ExportedMetrics,
  ServiceMetrics,
} from '#platform/telemetry/service-metrics.service.js';
import type { FromPrimary, FromWorker, WorkerTask } from './messages.js';

/** The milliseconds for which a worker that ends waits for the answer of the primary process. */
const PATIENCE_MS = 1_000;

/** A worker's side of the channel to the primary process. */
export class Worker {
  readonly #gathering = new Map<number, (metrics: readonly ExportedMetrics[]) => void>();
  readonly #stored = Promise.withResolvers<void>();
  #metrics: Pick<ServiceMetrics, 'export'> | undefined;
  #lastId = 0;

  constructor(
    private readonly task: WorkerTask,
    /** The configuration that the primary process read. */
    readonly read: ReadConfiguration,
  ) {}

  get number(): number {
    return this.task.number;
  }

  get database(): PreparedDatabase {
    return this.task.database;
  }

  /** Asks the primary process for the metrics of all workers. */
  readonly gatherMetrics = (): Promise<readonly ExportedMetrics[]> => {
    const id = (this.#lastId += 1);
    const { promise, resolve } = Promise.withResolvers<readonly ExportedMetrics[]>();
    this.#gathering.set(id, resolve);
    tell({ kind: 'gather', id });
    return promise;
  };

  /**
   * Tells the primary process that this worker serves. From now on the worker answers the primary
   * process's requests for metrics.
   */
  serve(metrics: Pick<ServiceMetrics, 'export'>): void {
    this.#metrics = metrics;
    process.on('message', (message: FromPrimary) => {
      if (message.kind === 'export') void answer(message.id, metrics);
      if (message.kind === 'stored') this.#stored.resolve();
      if (message.kind === 'gathered') {
        this.#gathering.get(message.id)?.(message.metrics);
        this.#gathering.delete(message.id);
      }
    });
    tell({ kind: 'serves' });
  }

  /**
   * Sends the metrics once more before this worker ends, so that no count is lost. Nest calls it
   * after the last request. This method waits until the primary process has the metrics, because
   * the primary process may see the end of the worker before its last message.
   */
  async onApplicationShutdown(): Promise<void> {
    if (!this.#metrics || !process.connected) return;
    tell({ kind: 'last-metrics', metrics: await this.#metrics.export() });
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, PATIENCE_MS);
    await Promise.race([this.#stored.promise, promise]);
    clearTimeout(timer);
  }
}

/**
 * Asks the primary process for the task of this worker, and makes its configuration.
 * @throws ConfigProblems if a file that the configuration names has become wrong
 */
export async function receiveTask(): Promise<Worker> {
  const { promise, resolve } = Promise.withResolvers<WorkerTask>();
  process.once('message', (message: FromPrimary) => {
    if (message.kind === 'task') resolve(message.task);
  });
  tell({ kind: 'awaits-task' });
  const task = await promise;
  return new Worker(task, await configurationFrom(task.sources));
}

async function answer(id: number, metrics: Pick<ServiceMetrics, 'export'>): Promise<void> {
  tell({ kind: 'metrics', id, metrics: await metrics.export() });
}

/**
 * Sends a message to the primary process. If the primary process has ended, the message is dropped,
 * because this process ends then as well.
 */
function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message);
}
