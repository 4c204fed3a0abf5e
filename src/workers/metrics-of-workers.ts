import { sumOfMetrics, type ExportedMetrics } from '#platform/telemetry/service-metrics.service.js';

/** The milliseconds for which a worker may not answer before its last known metrics count. */
const PATIENCE_MS = 2_000;

/** A question to all workers, with those that have not answered yet. */
interface Question {
  readonly id: number;
  readonly unanswered: Set<number>;
  readonly end: () => void;
}

/**
 * Collects the metrics of all workers. The sum never decreases, because a monitoring system takes a
 * decrease for a restart, and would count all requests again: the last known metrics of a worker
 * count if it does not answer, and after it ended.
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
   */
  collect(ask: (id: number) => readonly number[]): Promise<readonly ExportedMetrics[]> {
    const collected = this.#previous.then(() => this.#collect(ask));
    this.#previous = collected.catch(() => undefined);
    return collected;
  }

  /** Takes the answer of a worker. */
  answer(worker: number, id: number, metrics: ExportedMetrics): void {
    this.#known.set(worker, metrics);
    if (this.#question?.id === id) this.#leave(this.#question, worker);
  }

  /** Keeps the metrics of a worker that ended. */
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
    // A worker may have ended while the sum was made.
    this.#ended = [sum, ...this.#ended.slice(ended.length)];
  }
}
