import type { Vitest } from 'vitest/node';
import { PROJECTS } from './projects/projects.js';

/** The vitest projects of each command that can be a whole run. */
const COMMANDS = { test: PROJECTS, scale: ['scale', 'pooled'] } as const;

/** A run of all files: of `npm test`, or of `npm run test:scale`. */
export type WholeRun = keyof typeof COMMANDS;

/**
 * Returns the command of which a run is a whole run; undefined if some files, or some tests by
 * their names, are left out.
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
