import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'vitest';

/** Where programs are: a daemon such as sshd lies outside an ordinary user's PATH. */
const DIRECTORIES = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'];

/** The absolute path of a program, or undefined where it is not installed. */
export function findProgram(name: string): string | undefined {
  return DIRECTORIES.map((directory) => join(directory, name)).find(isExecutable);
}

/** What a group of tests needs of the machine. */
export interface Requirement {
  /** What is not there. */
  readonly missing: readonly string[];
  /** vitest's `describe`, or, where something is missing, `describe.skip` with a title that names it. */
  describe(title: string, tests: () => void): void;
}

/**
 * Tests that need programs of the machine are skipped by name where one is missing, never quietly:
 *
 *     requires('sshd', 'ssh').describe('a real sshd', () => { … });
 *
 * @param needs names on the PATH; `root` stands for being root, `reachable` for a checkout that the user nobody can reach
 */
export function requires(...needs: string[]): Requirement {
  const missing = needs.filter((need) => !isMet(need));
  const why = missing.length === 0 ? '' : ` (skipped: this needs ${missing.join(' and ')})`;
  return {
    missing,
    describe: (title, tests) => {
      suite.skipIf(missing.length > 0)(`${title}${why}`, () => {
        tests();
      });
    },
  };
}

function isMet(need: string): boolean {
  if (need === 'root') return process.getuid?.() === 0;
  if (need === 'reachable') return nobodyReaches(import.meta.filename);
  return findProgram(need) !== undefined;
}

/** Whether the user nobody may read a file: every folder above it must let others through. */
function nobodyReaches(file: string): boolean {
  if (process.getuid?.() !== 0) return true;
  const nobody = { uid: 65_534, gid: 65_534, cwd: '/' };
  return spawnSync('test', ['-r', file], nobody).status === 0;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
