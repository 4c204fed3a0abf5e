import type { Logger } from '@nestjs/common';
import type { Clock } from '#platform/clock/clock.js';
import { reasonOf } from '../statements/faults.js';

/** The work of a {@link QueueWorker}, and the words of its log lines. */
export interface QueueWork {
  /** Works on what is due in the queue. A fault is logged, and the worker goes on. */
  readonly drain: () => Promise<unknown>;
  /** Milliseconds between two reads of the queue without a wake. */
  readonly poll: number;
  readonly log: Logger;
  /** The queue as the subject of a log line, such as `The queue of logout notices`. */
  readonly name: string;
}

/** Reads a queue in the database again and again, at once after a wake, until it is stopped. */
export class QueueWorker {
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #wake = Promise.withResolvers<void>();
  /** The last fault that was logged: a database that is away is one line, not one a second. */
  #fault: string | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly work: QueueWork,
  ) {}

  /** True from the call of {@link stop}: what is due then stays in the queue. */
  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Looks at the queue at once. */
  wake(): void {
    this.#wake.resolve();
  }

  /** Ends the worker, and waits for the work that is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#running;
  }

  /** Logs a fault, unless it is the last one again. */
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
