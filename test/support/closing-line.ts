import { rmSync } from 'node:fs';
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { readDocument, readTraffic, undocumented, unmet } from './traffic/comparison.js';

/**
 * Ends the run with one line of the totals: `N passed, N failed`, and `, N skipped` if any test was skipped. A response that a test
 * met and the OpenAPI document lacks is a failure; after a run of all files, so is one that the document has and no test met.
 */
export default class ClosingLine implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
  ): Promise<void> {
    // An uncaught error counts as a failure, because it may hide a failed test.
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      // A file that cannot be loaded has no tests to count, and is a failure itself. A suite with a
      // failed hook is a failure too, because its tests are only skipped.
      count.failed += module.errors().length;
      for (const suite of module.children.allSuites()) count.failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') count.passed += 1;
        else if (state === 'skipped') count.skipped += 1;
        else count.failed += 1;
      }
    }
    count.failed += compareTraffic(await this.#isWhole(modules));
    const skipped = count.skipped === 0 ? '' : `, ${count.skipped} skipped`;
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`);
  }
  /** A run of all files without a filter for names. */
  async #isWhole(modules: readonly TestModule[]): Promise<boolean> {
    const vitest = this.#vitest;
    if (vitest === undefined || vitest.config.testNamePattern !== undefined) return false;
    const all = await vitest.globTestSpecifications();
    return modules.length === all.length;
  }
}

/** Compares the traffic of the run with the document, and prints the differences. @returns their number */
function compareTraffic(isWhole: boolean): number {
  const folder = process.env['TEST_TRAFFIC'];
  const document = folder === undefined ? undefined : readDocument(folder);
  if (folder === undefined || document === undefined) return 0;
  const met = readTraffic(folder);
  rmSync(folder, { recursive: true, force: true });
  const differences = [
    ...undocumented(met, document).map((line) => `met, and not in /openapi.json: ${line}`),
    ...(isWhole ? unmet(met, document) : []).map(
      (line) => `in /openapi.json, and not met: ${line}`,
    ),
  ];
  for (const line of differences) process.stdout.write(`${line}\n`);
  return differences.length;
}
