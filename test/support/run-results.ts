import type { SerializedError } from 'vitest';
import type { Reporter, TestModule, TestSpecification, Vitest } from 'vitest/node';
import { wholeRun, type WholeRun } from './whole-run.js';

/** The state of a checkout, as `readCheckout` of `scripts/evidence` returns it. */
interface Checkout {
  readonly commit: string | undefined;
  readonly isClean: boolean;
}

interface KeptResults {
  readonly readCheckout: (root: string) => Checkout;
  readonly keepResult: (root: string, name: string, document: object) => void;
  readonly forgetResult: (root: string, name: string) => void;
}

const script = new URL('../../scripts/evidence/kept-results.js', import.meta.url).href;
const { readCheckout, keepResult, forgetResult } = (await import(script)) as KeptResults;

/** The result of one test. The title includes the titles of the suites around the test. */
interface KeptTest {
  readonly title: string;
  readonly state: 'passed' | 'failed' | 'skipped';
}

/** The results of one file. An error outside of the tests, as in a hook, is counted in `errors`. */
interface KeptFile {
  errors: number;
  readonly tests: KeptTest[];
}

/**
 * Writes the results of a whole run into a file for `npm run evidence`. It adds the commit, and if
 * the files were those of the commit. A run of only some files writes nothing. An interrupted run
 * deletes the file of the earlier run.
 */
export default class RunResults implements Reporter {
  #vitest: Vitest | undefined;
  #command: WholeRun | undefined;
  #before: Checkout | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunStart(specifications: readonly TestSpecification[]): Promise<void> {
    this.#command = await wholeRun(this.#vitest, specifications.length);
    if (this.#vitest === undefined || this.#command === undefined) return;
    this.#before = readCheckout(this.#vitest.config.root);
    forgetResult(this.#vitest.config.root, `tests/${this.#command}`);
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    reason: 'passed' | 'failed' | 'interrupted',
  ): void {
    if (this.#vitest === undefined || this.#command === undefined) return;
    if (reason === 'interrupted') return;
    const { root } = this.#vitest.config;
    const after = readCheckout(root);
    const files = filesOf(modules);
    keepResult(root, `tests/${this.#command}`, {
      commit: after.commit,
      // The checkout must be clean before and after the run. Otherwise a change in between may have
      // changed the tested files.
      isClean:
        after.isClean && this.#before?.isClean === true && this.#before.commit === after.commit,
      ended: new Date().toISOString(),
      node: process.version,
      platform: `${process.platform} ${process.arch}`,
      totals: totalsOf(files, unhandled.length),
      files,
    });
  }
}

/**
 * Returns the results by the path of the file. A file that is in two projects has the tests of
 * both.
 */
function filesOf(modules: readonly TestModule[]): Record<string, KeptFile> {
  const files: Record<string, KeptFile> = {};
  for (const module of modules) {
    const file = (files[module.relativeModuleId] ??= { errors: 0, tests: [] });
    file.errors += module.errors().length;
    for (const suite of module.children.allSuites()) file.errors += suite.errors().length;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      // A test without a result did not end, and counts as failed.
      file.tests.push({ title: test.fullName, state: state === 'pending' ? 'failed' : state });
    }
  }
  return files;
}

/**
 * Counts the results as the last line of the run's output does. Differences between responses and
 * the OpenAPI document are the exception: they are not counted.
 */
function totalsOf(files: Readonly<Record<string, KeptFile>>, unhandled: number) {
  const totals = { passed: 0, failed: unhandled, skipped: 0 };
  for (const { errors, tests } of Object.values(files)) {
    totals.failed += errors;
    for (const { state } of tests) totals[state] += 1;
  }
  return totals;
}
