import cluster, { type Worker as ClusterWorker } from 'node:cluster';
import type { LoggerService } from '@nestjs/common';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import type { FromPrimary, FromWorker, WorkerTask } from './messages.js';
import { MetricsOfWorkers } from './metrics-of-workers.js';
import { endsInARow, restartDelay } from './restart-delay.js';

/**
 * The milliseconds from the signal to stop until all workers that still run are killed. A worker
 * ends by itself a second earlier (`EXIT_MS` in `listeners.service.ts`).
 */
const KILL_MS = 30_000;

/**
 * A numbered position in the pool, with the process that fills it. If the process ends, another
 * process takes the position.
 */
interface Place {
  readonly number: number;
  process: ClusterWorker | undefined;
  /** True if the process has asked for its task, so that it handles signals by now. */
  isRunning: boolean;
  /** When the process began to serve, in milliseconds of the monotonic clock; undefined before. */
  servesSince: number | undefined;
  /**
   * The number of processes of this position that ended in a row. An end after a minute of service
   * begins the count at 1 again.
   */
  ends: number;
}

/**
 * Returns the data that a worker needs for its start. `isFirst` is true for the first worker of the
 * service, which starts alone.
 */
export type TaskOf = (number: number, isFirst: boolean) => WorkerTask;

/** The worker processes of the service, as the primary process sees them. */
export class WorkerPool {
  readonly #places: readonly Place[];
  readonly #metrics = new MetricsOfWorkers();
  readonly #ended = Promise.withResolvers<number>();
  /** True once the first worker has served. The others are started only then. */
  #hasBegun = false;
  #stop: { readonly signal: NodeJS.Signals; status: number } | undefined;
  #whenServing: (() => void) | undefined;

  constructor(
    count: number,
    private readonly taskOf: TaskOf,
    private readonly log: Pick<LoggerService, 'log' | 'warn' | 'error'>,
    private readonly clock: Clock = systemClock,
    private readonly fork: () => ClusterWorker = () => cluster.fork(),
  ) {
    this.#places = Array.from({ length: count }, (_, index) => ({
      number: index + 1,
      process: undefined,
      isRunning: false,
      servesSince: undefined,
      ends: 0,
    }));
  }

  /** Resolves with the exit status of the service when all workers have ended after a stop. */
  get ended(): Promise<number> {
    return this.#ended.promise;
  }

  /**
   * Starts the workers, and resolves when all of them serve. The first worker starts alone, because
   * at the first start of a service it makes the keys that the other workers then find. If a worker
   * cannot start and no other worker serves, all workers end.
   */
  async start(): Promise<void> {
    const [first, ...others] = this.#places;
    if (first) await this.#untilServing([first]);
    if (others.length > 0) await this.#untilServing(others);
    this.log.log(`${this.#places.length} workers serve`);
  }

  /**
   * Makes the workers read their certificate again, by SIGHUP. A worker that has just been started
   * is left out, because it reads the certificate later, and the signal would end it.
   */
  reload(): void {
    for (const { process, isRunning } of this.#places) {
      if (isRunning) process?.process.kill('SIGHUP');
    }
  }

  /**
   * Stops the workers, which answer the requests in flight before they end.
   *
   * @param status the exit status of the service. If it is 0 and a worker fails while it stops, the
   *   exit status is that of the first such worker
   */
  stop(signal: NodeJS.Signals, status = 0): void {
    if (this.#stop) return;
    this.#stop = { signal, status };
    this.#signal(signal);
    setTimeout(() => this.#signal('SIGKILL'), KILL_MS).unref();
    this.#endIfAllEnded();
  }

  #signal(signal: NodeJS.Signals): void {
    for (const { process } of this.#places) process?.process.kill(signal);
  }

  async #untilServing(places: readonly Place[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenServing = () => {
      if (places.every(({ servesSince }) => servesSince !== undefined)) resolve();
    };
    for (const place of places) this.#fork(place);
    await promise;
    this.#whenServing = undefined;
  }

  /** Starts a worker, unless the service stops: the signal to stop is sent to the workers once. */
  #fork(place: Place): void {
    if (this.#stop) return;
    let worker: ClusterWorker;
    try {
      worker = this.fork();
    } catch (error) {
      this.#leaveUnstarted(place, error);
      return;
    }
    place.process = worker;
    worker.on('message', (message: FromWorker) => void this.#receive(place, worker, message));
    // Some errors of the operating system, such as ENOMEM, are thrown by `fork` above. Others, such
    // as EAGAIN, arrive as this event, for a worker without a process that never emits `exit`.
    worker.on('error', (fault) => {
      if (worker.process.pid === undefined) this.#leaveUnstarted(place, fault);
      else this.log.error(`worker ${place.number}: ${fault.message}`);
    });
    worker.once('exit', (code: number | null, signal: NodeJS.Signals | null) => {
      this.#metrics.retire(worker.id);
      const how = signal ? `by ${signal}` : `with status ${code}`;
      this.#leave(place, `(process ${worker.process.pid}) ended ${how}`, code, signal);
    });
  }

  /** Handles a worker that the system did not start, for example because it has no process left. */
  #leaveUnstarted(place: Place, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#leave(place, `was not started (${reason}) and ended`, 1, null);
  }

  async #receive(place: Place, worker: ClusterWorker, message: FromWorker): Promise<void> {
    switch (message.kind) {
      case 'awaits-task':
        place.isRunning = true;
        send(worker, { kind: 'task', task: this.taskOf(place.number, !this.#hasBegun) });
        return;
      case 'serves':
        this.#hasBegun = true;
        place.servesSince = this.clock.monotonic();
        this.#whenServing?.();
        return;
      case 'metrics':
        this.#metrics.answer(worker.id, message.id, message.metrics);
        return;
      case 'last-metrics':
        this.#metrics.store(worker.id, message.metrics);
        send(worker, { kind: 'stored' });
        return;
      case 'gather': {
        const metrics = await this.#metrics.collect((id) => this.#askForMetrics(id));
        send(worker, { kind: 'gathered', id: message.id, metrics });
      }
    }
  }

  /** Asks every serving worker for its metrics, and returns the ids of these workers. */
  #askForMetrics(id: number): number[] {
    return this.#places.flatMap(({ process, servesSince }) => {
      if (!process || servesSince === undefined) return [];
      return send(process, { kind: 'export', id }) ? [process.id] : [];
    });
  }

  #leave(place: Place, how: string, code: number | null, signal: NodeJS.Signals | null): void {
    const { number, servesSince } = place;
    place.process = undefined;
    place.isRunning = false;
    place.servesSince = undefined;
    if (this.#stop) {
      const isAsked = code === 0 || signal === this.#stop.signal;
      if (!isAsked) this.#stop.status ||= code ?? 1;
      this.#endIfAllEnded();
      return;
    }
    const what = `worker ${number} ${how}`;
    const servedMs = servesSince === undefined ? 0 : this.clock.monotonic() - servesSince;
    if (servesSince === undefined && !this.#isServing()) {
      this.log.error(`${what} before it served; the service stops`);
      this.stop('SIGTERM', code ?? 1);
      return;
    }
    place.ends = endsInARow(place.ends, servedMs);
    const delay = restartDelay(place.ends);
    this.log.error(`${what}; it is started again in ${delay} ms`);
    void this.#forkLater(place, delay);
  }

  /** Returns true while at least one worker serves. */
  #isServing(): boolean {
    return this.#places.some(({ servesSince }) => servesSince !== undefined);
  }

  async #forkLater(place: Place, delay: number): Promise<void> {
    await this.clock.sleep(delay);
    this.#fork(place);
  }

  #endIfAllEnded(): void {
    if (!this.#stop || this.#places.some(({ process }) => process)) return;
    this.#ended.resolve(this.#stop.status);
  }
}

/** Sends a message to a worker. Returns false if the worker has ended. */
function send(worker: ClusterWorker, message: FromPrimary): boolean {
  if (!worker.isConnected()) return false;
  // The callback receives, and ignores, the error of a worker that ends at this moment. The event
  // `exit` reports its end anyway.
  return worker.send(message, undefined, () => undefined);
}
