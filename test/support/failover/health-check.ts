/**
 * The milliseconds between two checks, and the milliseconds after which a check without an answer
 * fails.
 */
const TIMES = { every: 1000, answer: 2000 } as const;

/**
 * The number of failed checks in a row after which a replica gets no more requests, or is taken for
 * dead.
 */
const FALL = 2;

/** Checks every second if a replica is alive and ready, as a load balancer does. */
export class HealthCheck {
  #failures = { alive: 0, ready: 0 };
  #ending = new AbortController();
  readonly #timer: NodeJS.Timeout;

  /** @param port the port of the replica */
  constructor(private readonly port: number) {
    this.#timer = setInterval(() => void this.#ask(), TIMES.every).unref();
  }

  /**
   * False after two failed checks of readiness in a row. The proxy then prefers the other replicas.
   */
  get isHealthy(): boolean {
    return this.#failures.ready < FALL;
  }

  /** The signal that ends the requests under way when the process no longer answers checks. */
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
