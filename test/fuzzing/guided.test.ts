import '../support/full-scale-only.js';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { TARGET_NAMES } from './targets.js';

const run = promisify(execFile);
const NODE = ['--conditions=source', '--import', './test/support/typescript-hooks.js'];
/**
 * The number of inputs for each parser. Even the slowest parser needs only a few seconds for them.
 */
const EXECUTIONS = '4000';

it.each(TARGET_NAMES)('%s breaks no rule on mutants that reach new code', async (name) => {
  const args = ['test/fuzzing/main.ts', name, '--executions', EXECUTIONS, '--seed', '30'];
  const { stdout } = await run(process.execPath, [...NODE, ...args]);
  expect(stdout).toMatch(new RegExp(`^${name} \\| ${EXECUTIONS} .* \\| 0$`, 'm'));
});
