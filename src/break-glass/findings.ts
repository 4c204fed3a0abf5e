import { reasonOf } from '#platform/database/statements/faults.js';

/** One result of the command `check`. */
interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly detail: string;
}

const MARKS = { ok: 'ok     ', warning: 'warning', failed: 'FAILED ', skipped: 'skipped' } as const;

/** The results of the command `check`, in the order of the checks. */
export class Findings {
  readonly #all: Finding[] = [];

  /** True when no check has failed. */
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
