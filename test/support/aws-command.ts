import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { requires, type Requirement } from './programs.js';

/**
 * The paths of the `aws` commands on this machine that work, by their versions. There may be two,
 * one of Debian and one that pip installed.
 */
export const AWS_COMMANDS: ReadonlyMap<string, string> = new Map(
  (process.env['PATH'] ?? '').split(':').flatMap((folder) => {
    const version = versionOf(join(folder, 'aws'));
    return version === undefined ? [] : [[version, join(folder, 'aws')] as const];
  }),
);

/** Skips tests, and says so in their titles, if no `aws` command works. */
export const requiresAws: Requirement =
  AWS_COMMANDS.size > 0 ? requires() : requires('an aws command that works');

/**
 * Returns the version that a command prints; undefined if it does not work. A command of pyenv may
 * exist without the program behind it, so an existing file is not enough.
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
