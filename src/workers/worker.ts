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

/** A worker's side of the channel to the primary process. */
export class Worker {
  readonly #gathering = new Map<number, (metrics: readonly ExportedMetrics[]) => void>();
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
    process.on('message', (message: FromPrimary) => {
      if (message.kind === 'export') void answer(message.id, metrics);
      if (message.kind === 'gathered') {
        this.#gathering.get(message.id)?.(message.metrics);
        this.#gathering.delete(message.id);
      }
    });
    tell({ kind: 'serves' });
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
 * Sends a message to the primary process. If that has ended, the message is dropped, because this
 * process ends then as well.
 */
function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message);
}
