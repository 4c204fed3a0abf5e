import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

/** Ends the run with one line of the true totals: `N passed, N failed` and `, N skipped` where any was. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    // An error nobody caught may have made any test pass: it counts.
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      // A file that cannot even be loaded has no tests to count: it is a failure of its own.
      // So has a suite whose hooks fail: its tests are skipped, and must not hide it.
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
