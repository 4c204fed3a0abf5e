import { realpathSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { variable } from '../program/environment.js';

/**
 * Returns true if the command runs as one executable with its own Node, and false if a program of
 * Node runs the script. The oldest versions of Node lack `node:sea`, and can only run the script.
 */
export function isOneExecutable(): boolean {
  return process.getBuiltinModule?.('node:sea')?.isSea() ?? false;
}

/**
 * Returns the full path with which the user started the command. A symbolic link is not followed:
 * other programs keep this path, and Homebrew and similar tools let the same link lead to the next
 * version.
 */
export function ownPath(): string {
  const { argv, argv0, execPath } = process;
  return isOneExecutable() ? pathAsTyped(argv0, execPath) : resolve(argv[1] ?? 'svc');
}

/** Returns the program and the first arguments that start this command again. */
export function ownCommand(): readonly [program: string, ...args: string[]] {
  const { argv, execArgv, execPath } = process;
  return isOneExecutable() ? [execPath] : [execPath, ...execArgv, argv[1] ?? ''];
}

/**
 * Returns the path that a shell found for the word that started an executable. The word may be any
 * text, so a path counts only if it leads to the file that runs.
 *
 * @param word the first word of the command line, such as `svc`
 * @param program the path of the file that runs, without symbolic links
 */
function pathAsTyped(word: string, program: string): string {
  const isPath = /[/\\]/.test(word);
  const folders = isPath ? [''] : (variable('PATH') ?? '').split(delimiter);
  const names = process.platform === 'win32' ? [word, `${word}.exe`] : [word];
  const paths = folders.flatMap((folder) => names.map((name) => resolve(join(folder, name))));
  return paths.find((path) => isSameFile(path, program)) ?? program;
}

function isSameFile(path: string, program: string): boolean {
  try {
    return realpathSync(path) === realpathSync(program);
  } catch {
    return false;
  }
}
