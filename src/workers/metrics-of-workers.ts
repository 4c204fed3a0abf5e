import { sumOfMetrics, type ExportedMetrics } from '#platform/telemetry/service-metrics.service.js';

/** The milliseconds that a worker has to answer. After that, its last known metrics are used. */
const PATIENCE_MS = 2_000;

/**
 * A request to all workers for their metrics, with the ids of the workers that have not answered
 * yet.
 */
interface Question {
  readonly id: number;
  readonly unanswered: Set<number>;
  readonly end: () => void;
}

/**
 * Collects the metrics of all workers. If a worker does not answer or has ended, its last known
 * metrics count. Without them the sum could decrease, and a monitoring system takes a decrease for
 * a restart and counts all requests again.
 */
export class MetricsOfWorkers {
  readonly #known = new Map<number, ExportedMetrics>();
  #ended: ExportedMetrics[] = [];
  #question: Question | undefined;
  #lastId = 0;
  #previous: Promise<unknown> = Promise.resolve();

  /**
   * Asks the workers for their metrics, and waits for the answers. Questions run one after another.
   *
   * @param ask sends the question with an id to every worker, and returns the ids of the workers
   *   that got it
   */
  collect(ask: (id: number) => readonly number[]): Promise<readonly ExportedMetrics[]> {
    const collected = this.#previous.then(() => this.#collect(ask));
    this.#previous = collected.catch(() => undefined);
    return collected;
  }

  /** Stores the metrics of a worker, in place of those that the worker sent before. */
  store(worker: number, metrics: ExportedMetrics): void {
    this.#known.set(worker, metrics);
  }

  /**
   * Stores the metrics that a worker sent, as its answer to the question `id`. A late answer is
   * stored as well.
   */
  answer(worker: number, id: number, metrics: ExportedMetrics): void {
    this.store(worker, metrics);
    if (this.#question?.id === id) this.#leave(this.#question, worker);
  }

  /** Records that a worker has ended. Its last known metrics stay in the sum. */
  retire(worker: number): void {
    const last = this.#known.get(worker);
    this.#known.delete(worker);
    if (last) this.#ended.push(last);
    if (this.#question) this.#leave(this.#question, worker);
  }

  async #collect(ask: (id: number) => readonly number[]): Promise<readonly ExportedMetrics[]> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, PATIENCE_MS);
    const id = (this.#lastId += 1);
    const question = { id, unanswered: new Set(ask(id)), end: resolve };
    this.#question = question;
    if (question.unanswered.size > 0) await promise;
    clearTimeout(timer);
    this.#question = undefined;
    await this.#addUpEnded();
    return [...this.#ended, ...this.#known.values()];
  }

  #leave({ unanswered, end }: Question, worker: number): void {
    unanswered.delete(worker);
    if (unanswered.size === 0) end();
  }

  /** Adds up the metrics of ended workers, so that their list stays short. */
  async #addUpEnded(): Promise<void> {
    const ended = [...this.#ended];
    if (ended.length < 2) return;
    const sum = await sumOfMetrics(ended);
    // Workers that ended while the sum was made are behind the added ones in the list, and stay.
    this.#ended = [sum, ...this.#ended.slice(ended.length)];
  }
}
