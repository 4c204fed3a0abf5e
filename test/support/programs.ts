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
 * @param programs names on the PATH; `root` stands for being root
 */
export function requires(...programs: string[]): Requirement {
  const missing = programs.filter((name) =>
    name === 'root' ? process.getuid?.() !== 0 : findProgram(name) === undefined,
  );
  const needs = missing.length === 0 ? '' : ` (skipped: this needs ${missing.join(' and ')})`;
  return {
    missing,
    describe: (title, tests) => {
      suite.skipIf(missing.length > 0)(`${title}${needs}`, () => {
        tests();
      });
    },
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
