import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readResult, whyNotCounted } from './kept-results.js';
import { titlesOf } from './test-titles.js';

/** The commands that run tests, with the names of their kept results. */
const COMMANDS = { 'npm test': 'tests/test', 'npm run test:scale': 'tests/scale' };

/** The results of tests, the worst first: a file is as good as its worst test. */
export const STATES = ['failed', 'not run', 'skipped', 'passed'];

/**
 * The last whole run of each command that runs tests, and its results for each test file.
 *
 * A result counts only for its own commit. Without such a result a test is "not run", even if it
 * ran on an earlier commit.
 */
export class TestResults {
  #files = new Map();

  /**
   * @param {string} root the folder of the checkout
   * @param {{ commit: string | undefined, isClean: boolean }} checkout
   */
  constructor(root, checkout) {
    this.root = root;
    this.runs = Object.entries(COMMANDS).map(([command, name]) => {
      const kept = readResult(root, name);
      const whyNot = whyNotCounted(kept, checkout);
      return { command, whyNot, ...(whyNot === undefined && { kept }) };
    });
  }

  /**
   * Returns the test files of a name such as `api/login`, which may also be a folder.
   * @param {string} name a path below `test/`
   */
  filesOf(name) {
    const patterns = [`test/${name}.test.ts`, `test/${name}/**/*.test.ts`];
    return globSync(patterns, { cwd: this.root }).toSorted();
  }

  /**
   * Returns the tests of a file, each with its result.
   *
   * @param {string} path the path of the file below the root
   * @returns {{ path: string, state: string, counts: Record<string, number>, tests: { title:
   *   string, state: string }[] }}
   */
  of(path) {
    const known = this.#files.get(path);
    if (known !== undefined) return known;
    const file = this.#read(path);
    this.#files.set(path, file);
    return file;
  }

  #read(path) {
    const ran = this.#ranIn(path);
    const written = titlesOf(path, readFileSync(join(this.root, path), 'utf8'));
    const missing = written.filter(({ fits }) => ![...ran.keys()].some(fits));
    const tests = [
      ...[...ran].map(([title, state]) => ({ title, state })),
      ...missing.map(({ title }) => ({ title, state: 'not run' })),
    ];
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const { state } of tests) counts[state] += 1;
    // A file with an error outside of its tests has failed, even if all its tests passed.
    if (this.#kept(path).some(({ errors }) => errors > 0)) counts.failed += 1;
    return { path, state: worstOf(counts), counts, tests };
  }

  /**
   * Returns the results of the tests that ran, by their titles. A test of several runs has the
   * worst of its results.
   */
  #ranIn(path) {
    const ran = new Map();
    for (const { tests } of this.#kept(path)) {
      for (const { title, state } of tests) {
        const before = ran.get(title) ?? state;
        ran.set(title, STATES.indexOf(before) < STATES.indexOf(state) ? before : state);
      }
    }
    return ran;
  }

  #kept(path) {
    return this.runs.flatMap(({ kept }) => kept?.files[path] ?? []);
  }
}

/** Returns the worst state that occurs; "not run" if there is no test at all. */
export function worstOf(counts) {
  return STATES.find((state) => (counts[state] ?? 0) > 0) ?? 'not run';
}

/** Returns the sum of the counts of several files. */
export function sumOf(files) {
  return Object.fromEntries(
    STATES.map((state) => [state, files.reduce((sum, { counts }) => sum + counts[state], 0)]),
  );
}
