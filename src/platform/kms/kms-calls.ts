import type { Clock } from '#platform/clock/clock.js';
import type { Random } from '#platform/clock/random.js';
import { pauseBeforeRetry, timeForAttempt, type KmsLimits } from './call-policy.js';
import { admit, afterAnswer, afterFailure, CLOSED, type Circuit } from './circuit.js';
import { faultOf, KmsFault, suspended, timedOut } from './kms-fault.js';

/** One attempt of a call. The signal is aborted when the time of the attempt is over. */
export type KmsAttempt<T> = (signal: AbortSignal) => Promise<T>;

/**
 * Runs calls to AWS KMS. A call has a time limit and is repeated with random pauses. Each key has a
 * circuit breaker, which refuses calls after several calls in a row have failed. So a KMS that
 * fails gets little further load.
 */
export class KmsCalls {
  readonly #circuits = new Map<string, Circuit>();

  constructor(
    private readonly limits: KmsLimits,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  /**
   * Runs a call that uses a key.
   * @throws KmsFault if the last attempt fails, or if the circuit breaker of the key refuses the
   *   call
   */
  async run<T>(keyId: string, attempt: KmsAttempt<T>): Promise<T> {
    const { wait, isProbe, circuit } = admit(this.#of(keyId), this.clock.monotonic(), this.limits);
    if (wait !== undefined) throw suspended(wait);
    this.#circuits.set(keyId, circuit);
    try {
      const result = await this.#withRetries(keyId, attempt);
      this.#circuits.set(keyId, afterAnswer(this.#of(keyId), isProbe));
      return result;
    } catch (error) {
      const after =
        error instanceof KmsFault && error.kind === 'input'
          ? afterAnswer(this.#of(keyId), isProbe) // KMS works: the request is wrong
          : afterFailure(this.#of(keyId), isProbe, this.clock.monotonic(), this.limits);
      this.#circuits.set(keyId, after);
      throw error;
    }
  }

  async #withRetries<T>(keyId: string, attempt: KmsAttempt<T>): Promise<T> {
    const start = this.clock.monotonic();
    const elapsed = () => this.clock.monotonic() - start;
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await this.#timed(attempt, timeForAttempt(elapsed(), this.limits));
      } catch (error) {
        const fault = faultOf(error);
        const chance = this.random.bytes(4).readUInt32BE() / 2 ** 32;
        const failed = { attempts, elapsed: elapsed(), fault, chance };
        const pause = pauseBeforeRetry(failed, this.limits);
        if (pause === undefined || this.#isOpen(keyId)) throw fault;
        await this.clock.sleep(pause);
      }
    }
  }

  /**
   * Runs one attempt. It ends when its time is over, even if the SDK still waits for credentials.
   */
  async #timed<T>(attempt: KmsAttempt<T>, milliseconds: number): Promise<T> {
    const ended = new AbortController();
    const { signal } = ended;
    const timeout = this.clock.sleep(milliseconds, { signal }).then((): never => {
      throw timedOut();
    });
    try {
      return await Promise.race([attempt(signal), timeout]);
    } finally {
      ended.abort();
    }
  }

  /**
   * Returns true if failures of other calls have opened the circuit breaker of the key meanwhile.
   * The call is then not repeated.
   */
  #isOpen(keyId: string): boolean {
    return this.#of(keyId).state === 'open';
  }

  #of(keyId: string): Circuit {
    return this.#circuits.get(keyId) ?? CLOSED;
  }
}

/**
 * Returns the whole seconds that a client should wait before it repeats a request that failed
 * because of a fault of KMS.
 */
export function secondsToWait({ wait }: KmsFault): number {
  return Math.max(1, Math.ceil(wait / 1000));
}
