/** The milliseconds between two checks, and the time limit of one check in milliseconds. */
const TIMES = { every: 1000, answer: 2000 };

/**
 * The number of intervals into which the time limit of a check is divided (see {@link
 * afterRunning}).
 */
const PARTS = 20;

/**
 * The number of failed checks in a row after which the proxy prefers other replicas. After as many
 * failed checks of `/health`, it takes the replica for dead.
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
   * @param times the interval and the time limit of the checks, in milliseconds
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

  /** The signal that ends the open requests to the replica when it is taken for dead. */
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

  /** Sends one check to the replica. Returns the reason if it fails, else undefined. */
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
 * Calls a function after some milliseconds in which this process was running. A busy machine may
 * stop the process for seconds. With a plain timer, it would then see the end of the time limit
 * before it reads a response that has already arrived.
 */
function afterRunning(milliseconds: number, act: () => void): NodeJS.Timeout {
  let parts = 0;
  return setInterval(() => {
    parts += 1;
    if (parts >= PARTS) act();
  }, milliseconds / PARTS);
}
