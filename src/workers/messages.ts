import type { ConfigurationSources } from '#platform/config-sources/read-configuration.js';
import type { PreparedDatabase } from '#platform/database/open-database.js';
import type { ExportedMetrics } from '#platform/telemetry/service-metrics.service.js';

/** The data that a worker needs for its start. */
export interface WorkerTask {
  /**
   * The number of the worker, from 1. A worker that replaces an ended worker has the same number.
   */
  readonly number: number;
  readonly sources: ConfigurationSources;
  readonly database: PreparedDatabase;
}

/** A message from a worker to the primary process. */
export type FromWorker =
  | { readonly kind: 'awaits-task' }
  /** The listeners of the worker are open. */
  | { readonly kind: 'serves' }
  /** The worker asks for the metrics of all workers, because it got a request for `/metrics`. */
  | { readonly kind: 'gather'; readonly id: number }
  /** The worker answers the question for its metrics. */
  | { readonly kind: 'metrics'; readonly id: number; readonly metrics: ExportedMetrics }
  /** The worker sends its metrics once more before it ends, and waits for the answer `stored`. */
  | { readonly kind: 'last-metrics'; readonly metrics: ExportedMetrics };

/** A message from the primary process to a worker. */
export type FromPrimary =
  | { readonly kind: 'task'; readonly task: WorkerTask }
  | { readonly kind: 'export'; readonly id: number }
  /** The last metrics of the worker are stored, so that it may end. */
  | { readonly kind: 'stored' }
  | {
      readonly kind: 'gathered';
      readonly id: number;
      readonly metrics: readonly ExportedMetrics[];
    };
