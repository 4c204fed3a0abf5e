import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

/** Ends the run with one line of the totals: `N passed, N failed`, and `, N skipped` if any test was skipped. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
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
    const skipped = count.skipped === 0 ? '' : `, ${count.skipped} skipped`;
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`);
  }
}
