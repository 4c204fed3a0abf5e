/** The milliseconds between two questions, and those for which an answer is waited for. */
const TIMES = { every: 1000, answer: 2000 } as const;

/** The number of failed answers in a row after which a replica gets no more requests. */
const FALL = 2;

/** Asks a replica for its health, as a load balancer does. */
export class HealthCheck {
  #failures = { alive: 0, ready: 0 };
  #ending = new AbortController();
  readonly #timer: NodeJS.Timeout;

  /** @param port the port of the replica */
  constructor(private readonly port: number) {
    this.#timer = setInterval(() => void this.#ask(), TIMES.every).unref();
  }

  /** True if the replica gets requests, as long as any replica is ready. */
  get isHealthy(): boolean {
    return this.#failures.ready < FALL;
  }

  /** Ends the requests under way once the process does not answer any more. */
  get down(): AbortSignal {
    return this.#ending.signal;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #ask(): Promise<void> {
    const [isAlive, isReady] = await Promise.all([this.#is('/health'), this.#is('/health/ready')]);
    const { alive, ready } = this.#failures;
    this.#failures = { alive: isAlive ? 0 : alive + 1, ready: isReady ? 0 : ready + 1 };
    if (this.#failures.alive >= FALL) this.#ending.abort();
    else if (isAlive && this.#ending.signal.aborted) this.#ending = new AbortController();
  }

  #is(path: string): Promise<boolean> {
    const signal = AbortSignal.timeout(TIMES.answer);
    return fetch(`http://localhost:${this.port}${path}`, { signal }).then(
      async (answer) => {
        await answer.arrayBuffer();
        return answer.ok;
      },
      () => false,
    );
  }
}
