import type { Logger } from '@nestjs/common';
import type { Clock } from '#platform/clock/clock.js';
import { reasonOf } from '../statements/faults.js';

/** The work of a {@link QueueWorker}, and the texts of its log lines. */
export interface QueueWork {
  /**
   * Does all work that is due in the queue. If the function rejects, the fault is logged, and the
   * worker calls the function again after the next wait.
   */
  readonly drain: () => Promise<unknown>;
  /**
   * The milliseconds between two reads of the queue, if no notification wakes the worker before.
   */
  readonly poll: number;
  readonly log: Logger;
  /** The queue as the subject of a log line, such as `The queue of logout notices`. */
  readonly name: string;
}

/**
 * Reads a queue in the database at regular times, and at once after a call of {@link wake}, until
 * it is stopped.
 */
export class QueueWorker {
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #wake = Promise.withResolvers<void>();
  /**
   * The last fault that was logged. The same fault is logged only once in a row, because a database
   * that cannot be reached would otherwise fill the log.
   */
  #fault: string | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly work: QueueWork,
  ) {}

  /**
   * True after {@link stop} was called. Work that is due then stays in the queue, for the next
   * start.
   */
  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Makes the worker read the queue at once. */
  wake(): void {
    this.#wake.resolve();
  }

  /** Ends the worker, and waits for the work that is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#running;
  }

  /** Logs a fault, unless it is the same as the previous one. */
  note(error: unknown): void {
    const { log, name } = this.work;
    const reason = reasonOf(error);
    if (reason !== this.#fault) log.warn(`${name} waits: ${reason}`);
    this.#fault = reason;
  }

  async #run(): Promise<void> {
    const { drain, poll } = this.work;
    while (!this.isStopping) {
      this.#wake = Promise.withResolvers<void>();
      try {
        await drain();
        this.#fault = undefined;
      } catch (error) {
        this.note(error);
      }
      const pause = this.clock.sleep(poll, { signal: this.#stopping.signal }).catch(() => {});
      await Promise.race([this.#wake.promise, pause]);
    }
  }
}
