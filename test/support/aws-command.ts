import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { requires, type Requirement } from './programs.js';

/**
 * The `aws` commands of this machine that work, by version: their absolute paths. One may be
 * Debian's and another from Python's registry.
 */
export const AWS_COMMANDS: ReadonlyMap<string, string> = new Map(
  (process.env['PATH'] ?? '').split(':').flatMap((folder) => {
    const version = versionOf(join(folder, 'aws'));
    return version === undefined ? [] : [[version, join(folder, 'aws')] as const];
  }),
);

/** Skips tests, with a title that says so, if no `aws` command works. */
export const requiresAws: Requirement =
  AWS_COMMANDS.size > 0 ? requires() : requires('an aws command that works');

/**
 * Returns the version of a command; undefined if it does not work. A command of pyenv may exist
 * although no Python has the program, so only a printed version counts.
 */
function versionOf(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
  } catch {
    return undefined;
  }
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return status === 0 ? /^aws-cli\/(\S+)/.exec(stdout)?.[1] : undefined;
}
