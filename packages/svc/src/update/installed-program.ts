import { execFileSync } from 'node:child_process';
import { accessSync, constants, lstatSync, realpathSync } from 'node:fs';
import { devNull } from 'node:os';
import { dirname, extname } from 'node:path';
import { isOneExecutable } from '../files/own-program.js';
import { fileFailure } from '../files/private-folder.js';
import { variables } from '../program/environment.js';
import { CliFailure } from '../program/failure.js';

/** The file of the command on this machine. */
export interface InstalledProgram {
  /** The path of the file, after all symbolic links were followed. */
  readonly path: string;
  /**
   * True for the executable, which contains Node; false for the script, which an installed Node
   * runs.
   */
  readonly isExecutable: boolean;
  /** The system, as Node names it, such as `linux`; `arch` is the processor, such as `x64`. */
  readonly platform: string;
  readonly arch: string;
}

/** Returns the file of the command that runs. */
export function installedProgram(): InstalledProgram {
  const { platform, arch, execPath } = process;
  const isExecutable = isOneExecutable();
  const path = isExecutable ? execPath : (process.argv[1] ?? '');
  try {
    return { path: realpathSync(path), isExecutable, platform, arch };
  } catch (error) {
    throw fileFailure(path, error);
  }
}

/**
 * Returns the path at which an update keeps the version before: beside the program, with
 * `.previous` in its name.
 */
export function previousPath({ path }: InstalledProgram): string {
  const extension = ['.exe', '.mjs'].find((one) => one === extname(path)) ?? '';
  return `${path.slice(0, path.length - extension.length)}.previous${extension}`;
}

/** Returns the name that the program's file has in a release, by its system and processor. */
export function fileInRelease(program: InstalledProgram, version: string): string {
  const { isExecutable, platform, arch } = program;
  if (!isExecutable) return `svc-${version}.mjs`;
  if (platform === 'win32') return `svc-${version}-win-${arch}.exe`;
  return `svc-${version}-${platform}-${arch}.gz`;
}

/** Parts of the paths of package managers, and the command by which each updates svc. */
const MANAGERS: readonly (readonly [part: RegExp, command: string])[] = [
  [/\/Cellar\/|\/homebrew\/|\/linuxbrew\//i, 'brew upgrade svc'],
  [/[\\/]scoop[\\/]apps[\\/]/i, 'scoop update svc'],
  [/[\\/]WinGet[\\/]/i, 'winget upgrade svc'],
  [/[\\/]node_modules[\\/]/, 'npm install --global, with the file or registry that it came from'],
];

/**
 * The commands that ask a package manager of the system if it owns a file, each with the command
 * that updates svc.
 */
const OWNERS: readonly (readonly [ask: readonly string[], command: string])[] = [
  [['dpkg-query', '--search'], 'sudo apt-get install --only-upgrade svc'],
  [['rpm', '--query', '--file'], 'sudo dnf upgrade svc'],
];

/** Returns the command by which a package manager updates a file; undefined if none owns it. */
export function managerOf({ path, platform }: InstalledProgram): string | undefined {
  const known = MANAGERS.find(([part]) => part.test(path));
  if (known) return known[1];
  if (platform !== 'linux') return undefined;
  return OWNERS.find(([[program = '', ...args]]) => {
    try {
      // On Debian, rpm makes a database in the home folder, so it gets no home folder.
      const env = { ...variables(), HOME: devNull };
      execFileSync(program, [...args, path], { stdio: 'ignore', timeout: 20_000, env });
      return true;
    } catch {
      return false; // the program is not installed, or it does not own the file
    }
  })?.[1];
}

/**
 * Checks that the user may replace a program.
 *
 * @returns the mode of the file
 * @throws CliFailure if a package manager or another account owns it, or its folder is read-only
 */
export function assertReplaceable(program: InstalledProgram): number {
  const { path } = program;
  const command = managerOf(program);
  if (command !== undefined) {
    const message = `${path} belongs to a package manager, which updates it.`;
    throw new CliFailure(message, `Run: ${command}`);
  }
  const mode = assertOwn(path);
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw fileFailure(dirname(path), error);
  }
  return mode;
}

/**
 * Checks that a file belongs to the user, and returns its mode.
 *
 * @throws CliFailure if it is no file, or another account owns it or may change it
 */
export function assertOwn(path: string): number {
  const found = statusOf(path);
  if (!found.isFile()) throw new CliFailure(`${path} is no file.`, 'Install svc again.');
  const self = process.geteuid?.();
  if (self === undefined) return 0o755;
  if (found.uid !== self) {
    const whatToDo = 'Run svc update as the account that owns the file.';
    throw new CliFailure(`${path} belongs to another account.`, whatToDo);
  }
  if ((found.mode & 0o022) !== 0) {
    throw new CliFailure(`Other accounts can change ${path}.`, `Run: chmod go-w '${path}'`);
  }
  return found.mode & 0o777;
}

function statusOf(path: string) {
  try {
    return lstatSync(path);
  } catch (error) {
    throw fileFailure(path, error);
  }
}
