import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { requires, type Requirement } from './programs.js';

/**
 * The working `aws` commands of this machine by version, Debian's and that of Python's registry:
 * their absolute paths.
 */
export const AWS_COMMANDS: ReadonlyMap<string, string> = new Map(
  (process.env['PATH'] ?? '').split(':').flatMap((folder) => {
    const version = versionOf(join(folder, 'aws'));
    return version === undefined ? [] : [[version, join(folder, 'aws')] as const];
  }),
);

/** Skips tests by name when no `aws` command works. */
export const requiresAws: Requirement =
  AWS_COMMANDS.size > 0 ? requires() : requires('an aws command that works');

/** A shim of pyenv may be there for a command that no Python has: only a version proves one. */
function versionOf(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
  } catch {
    return undefined;
  }
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return status === 0 ? /^aws-cli\/(\S+)/.exec(stdout)?.[1] : undefined;
}
