import { systemClock } from '#platform/clock/clock.js';
import { reasonOf } from '#platform/database/statements/faults.js';

/** The result of one check of the command `check` or `init`. */
interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly detail: string;
}

const MARKS = { ok: 'ok     ', warning: 'warning', failed: 'FAILED ', skipped: 'skipped' } as const;

/**
 * The results of the command `check`, or of one group of questions of `init`, in the order of the
 * checks.
 */
export class Findings {
  readonly #all: Finding[] = [];

  /** True if no check has failed. Warnings do not count as failures. */
  get healthy(): boolean {
    return this.#all.every(({ status }) => status !== 'failed');
  }

  ok(check: string, detail: string): void {
    this.#all.push({ check, status: 'ok', detail });
  }

  warn(check: string, detail: string): void {
    this.#all.push({ check, status: 'warning', detail });
  }

  fail(check: string, detail: string): void {
    this.#all.push({ check, status: 'failed', detail });
  }

  /** Records checks that could not run, because an earlier check failed. */
  skip(checks: readonly string[], detail: string): void {
    for (const check of checks) this.#all.push({ check, status: 'skipped', detail });
  }

  /**
   * Runs a check and records its result: a thrown error is a failure. Returns the value of the
   * check; undefined if it failed.
   */
  async of<Value>(
    check: string,
    run: () => Promise<Value>,
    describe: (value: Value) => string = String,
  ): Promise<Value | undefined> {
    try {
      const value = await run();
      this.ok(check, describe(value));
      return value;
    } catch (error) {
      for (const line of reasonOf(error).split('\n')) this.fail(check, line);
      return undefined;
    }
  }

  /** Returns the results as lines of text. */
  lines(): string[] {
    const width = Math.max(...this.#all.map(({ check }) => check.length));
    return this.#all.map(
      ({ check, status, detail }) => `${MARKS[status]}  ${check.padEnd(width)}  ${detail}`,
    );
  }

  /** Returns the results as a JSON document. */
  toJson(): object {
    return { healthy: this.healthy, checks: this.#all };
  }
}

/**
 * The largest difference, in seconds, between the clocks of this machine and of the database that
 * counts as healthy. The checks of the times in tokens tolerate about as much.
 */
export const SKEW = 5;
/**
 * The largest difference, in seconds, between the clocks of this machine and of an identity
 * provider that counts as healthy. It is large because the provider's time is that of a `Date`
 * header, which counts whole seconds and arrives with a delay.
 */
export const SKEW_OF_PROVIDER = 30;

/**
 * Compares the clock of this machine with another one, and records a failure if they are more than
 * `most` seconds apart.
 *
 * @param other the owner of the other clock, as the result names it
 * @param at the time of the other clock in milliseconds since 1970; undefined if it is not known
 */
export function clockFinding(
  findings: Findings,
  name: string,
  other: string,
  at: number | undefined,
  most: number,
): void {
  if (at === undefined) return;
  const seconds = Math.round((systemClock.milliseconds() - at) / 1000);
  const apart = Math.abs(seconds);
  if (apart <= most) findings.ok(name, `agrees with ${other} within ${most} seconds`);
  else findings.fail(name, `${apart} seconds ${seconds > 0 ? 'ahead of' : 'behind'} ${other}`);
}
