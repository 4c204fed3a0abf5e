import { rmSync } from 'node:fs';
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { readDocument, readTraffic, undocumented, unmet } from './traffic/comparison.js';
import { wholeRun } from './whole-run.js';

/** The number of files that the list of the slowest files shows. */
const SLOWEST = 10;

/** The largest part of the total time that one test file should take, from 0 to 1. */
const LARGEST_SHARE = 0.05;

/**
 * Prints a last line with totals: `N passed, N failed`, and `, N skipped` if any test was skipped.
 * A response that the OpenAPI document lacks counts as a failure. After a run of all files, a
 * documented response that no test got also counts.
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
      // A file that cannot be loaded counts as one failure, because it has no tests to count. So
      // does a suite with a failed hook, because its tests are only skipped.
      count.failed += module.errors().length;
      for (const suite of module.children.allSuites()) count.failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') count.passed += 1;
        else if (state === 'skipped') count.skipped += 1;
        else count.failed += 1;
      }
    }
    const isWhole = (await wholeRun(this.#vitest, modules.length)) === 'test';
    if (isWhole) for (const line of slowest(modules)) process.stdout.write(`${line}\n`);
    // A skipped test may be the only one that gets some response. So missing responses count only
    // if no test was skipped.
    count.failed += compareTraffic(isWhole && count.skipped === 0);
    const skipped = count.skipped === 0 ? '' : `, ${count.skipped} skipped`;
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`);
  }
}

/**
 * Lists the slowest test files, because a run takes at least as long as its slowest file. Each line
 * has the seconds of the file and its part of the total time. The last line names the files that
 * take too large a part. They do not fail the run, because a busy machine may be the reason.
 */
function slowest(modules: readonly TestModule[]): string[] {
  const times = modules.map((module) => {
    const { duration, collectDuration, prepareDuration } = module.diagnostic();
    return { path: module.relativeModuleId, time: duration + collectDuration + prepareDuration };
  });
  const sum = times.reduce((total, { time }) => total + time, 0);
  const slow = times.toSorted((a, b) => b.time - a.time).slice(0, SLOWEST);
  const large = slow.filter(({ time }) => time > LARGEST_SHARE * sum).map(({ path }) => path);
  return [
    `\nThe ${slow.length} slowest of ${times.length} files, which took ${seconds(sum)} s together:`,
    ...slow.map(({ path, time }) => {
      const share = ((100 * time) / sum).toFixed(1);
      return `${seconds(time).padStart(8)} s ${share.padStart(4)} %  ${path}`;
    }),
    `Over ${100 * LARGEST_SHARE} % of the time: ${large.join(', ') || 'no file'}`,
  ];
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(1);
}

/**
 * Compares the responses of the run with the OpenAPI document, and prints the differences.
 * Documented responses that are missing count only after a run of all files.
 *
 * @returns the number of differences
 */
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
