/**
 * Runs Stryker, a mutation tester, on a set of files: `npm run mutation -- [SET]`. Stryker changes
 * a copy of the code, one place at a time, and runs the unit tests of the set each time. A change
 * that no test notices "survives" and lowers the score.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SETS } from './sets.js';

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(SETS, name));
if (unknown.length > 0) {
  process.stderr.write(
    `no such set: ${unknown.join(', ')}\nuse: ${Object.keys(SETS).join(', ')}\n`,
  );
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'svc-mutation-'));
try {
  const statuses = (names.length > 0 ? names : Object.keys(SETS)).map(runSet);
  process.exitCode = Math.max(...statuses);
} finally {
  rmSync(folder, { recursive: true });
}

function runSet(name) {
  const { mutate, tests } = SETS[name];
  const settings = {
    mutate,
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner'],
    vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
    coverageAnalysis: 'perTest',
    concurrency: 1,
    timeoutMS: 30_000,
    thresholds: { high: 90, low: 85, break: 85 },
    ignorePatterns: [
      '/*',
      ...[
        'config',
        'packages',
        'src',
        'test',
        'package.json',
        'tsconfig*.json',
        'vitest.config.ts',
      ].map((path) => `!/${path}`),
      'packages/*/dist',
      'packages/*/node_modules',
    ],
    reporters: ['clear-text'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    tempDirName: join(folder, 'copy'),
    // If true, Stryker would parse all files of the copy to switch off type checks, which takes
    // time.
    disableTypeChecks: false,
  };
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(settings));
  const env = { ...process.env, SVC_MUTATION_TESTS: tests.join() };
  return spawnSync('npx', ['stryker', 'run', file], { stdio: 'inherit', env }).status ?? 1;
}
