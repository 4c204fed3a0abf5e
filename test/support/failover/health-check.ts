/**
 * The milliseconds between two checks, and the milliseconds after which a check without an answer
 * fails.
 */
const TIMES = { every: 1000, answer: 2000 };

/** The parts of the time of a check, of which each counts once however long it took. */
const PARTS = 20;

/**
 * The number of failed checks in a row after which a replica gets no more requests, or is taken for
 * dead.
 */
const FALL = 2;

/** Checks every second if a replica is alive and ready, as a load balancer does. */
export class HealthCheck {
  #failures = { alive: 0, ready: 0 };
  #ending = new AbortController();
  /** A text about each time at which the replica was taken for dead. */
  readonly deaths: string[] = [];
  readonly #timer: NodeJS.Timeout;

  /**
   * @param port the port of the replica
   * @param times replaces the times of the checks
   */
  constructor(
    private readonly port: number,
    private readonly times: typeof TIMES = TIMES,
  ) {
    this.#timer = setInterval(() => void this.#ask(), times.every).unref();
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
    const [aliveFault, readyFault] = await Promise.all([
      this.#faultOf('/health'),
      this.#faultOf('/health/ready'),
    ]);
    const isAlive = aliveFault === undefined;
    const isReady = readyFault === undefined;
    const { alive, ready } = this.#failures;
    this.#failures = { alive: isAlive ? 0 : alive + 1, ready: isReady ? 0 : ready + 1 };
    if (this.#failures.alive >= FALL) this.#end(aliveFault ?? '');
    else if (isAlive && this.#ending.signal.aborted) this.#ending = new AbortController();
  }

  #end(fault: string): void {
    if (!this.#ending.signal.aborted)
      this.deaths.push(`${new Date().toISOString()} the replica was taken for dead: ${fault}`);
    this.#ending.abort();
  }

  /** Asks the replica, and returns why the check has failed; undefined if it has not. */
  async #faultOf(path: string): Promise<string | undefined> {
    const ending = new AbortController();
    const limit = afterRunning(this.times.answer, () => ending.abort(new Error('no answer')));
    try {
      const { signal } = ending;
      const answer = await fetch(`http://localhost:${this.port}${path}`, { signal });
      await answer.arrayBuffer();
      return answer.ok ? undefined : `status ${answer.status}`;
    } catch (error) {
      return `${path}: ${String(error)}`;
    } finally {
      clearInterval(limit);
    }
  }
}

/**
 * Calls a function after some milliseconds in which this process has run. On a busy machine it may
 * stand still for seconds, and would then see the end of a time limit before it reads the answer
 * that has arrived meanwhile.
 */
function afterRunning(milliseconds: number, act: () => void): NodeJS.Timeout {
  let parts = 0;
  return setInterval(() => {
    parts += 1;
    if (parts >= PARTS) act();
  }, milliseconds / PARTS);
}
