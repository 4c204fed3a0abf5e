import type { Vitest } from 'vitest/node';
import { PROJECTS } from './projects/projects.js';

/** The vitest projects of each command that can run all its files. */
const COMMANDS = { test: PROJECTS, scale: ['scale', 'pooled'] } as const;

/** The command of a whole run, which runs all files: `npm test` or `npm run test:scale`. */
export type WholeRun = keyof typeof COMMANDS;

/**
 * Returns the command of a whole run; undefined if the run leaves out files, or selects tests by
 * their names.
 *
 * @param files the number of files in the run
 */
export async function wholeRun(
  vitest: Vitest | undefined,
  files: number,
): Promise<WholeRun | undefined> {
  if (vitest === undefined || vitest.config.testNamePattern !== undefined) return undefined;
  const names = vitest.projects.map(({ name }) => name);
  const found = (Object.keys(COMMANDS) as WholeRun[]).find((command) =>
    COMMANDS[command].every((name) => names.includes(name)),
  );
  const all = await vitest.globTestSpecifications();
  return files === all.length ? found : undefined;
}
