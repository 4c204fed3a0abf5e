import type { EnvironmentChange } from '../child/child-environment.js';
import { variable } from '../program/environment.js';

/** The shells for which `svc env` can write lines. */
export const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const;

/** One of the shells in {@link SHELLS}. */
export type Shell = (typeof SHELLS)[number];

/**
 * The functions that write one line for a shell. A value is quoted so that the shell takes each
 * character as it is.
 */
interface Writer {
  readonly set: (name: string, value: string) => string;
  readonly unset: (name: string) => string;
}

const POSIX: Writer = {
  set: (name, value) => `export ${name}='${value.replaceAll("'", `'\\''`)}'`,
  unset: (name) => `unset ${name}`,
};

const WRITERS: Readonly<Record<Shell, Writer>> = {
  bash: POSIX,
  zsh: POSIX,
  fish: {
    set: (name, value) =>
      `set -gx ${name} '${value.replaceAll('\\', '\\\\').replaceAll("'", `\\'`)}'`,
    unset: (name) => `set -e ${name}`,
  },
  powershell: {
    set: (name, value) => `$env:${name} = '${value.replaceAll(/['‘’‚‛]/g, '$&$&')}'`,
    unset: (name) => `Remove-Item -ErrorAction SilentlyContinue Env:${name}`,
  },
};

/**
 * Returns the lines by which a shell changes its environment. Variables that are not set now get no
 * line that removes them.
 */
export function shellLines(shell: Shell, { set, unset }: EnvironmentChange): string[] {
  const writer = WRITERS[shell];
  return [
    ...unset.filter((name) => variable(name) !== undefined).map((name) => writer.unset(name)),
    ...Object.entries(set).map(([name, value]) => writer.set(name, value)),
  ];
}

/**
 * Returns the shell of the user, by the variable SHELL: bash if it names no known shell, and
 * PowerShell on Windows.
 */
export function usualShell(): Shell {
  if (process.platform === 'win32') return 'powershell';
  const name = (variable('SHELL') ?? '').replace(/^.*\//, '');
  return SHELLS.find((shell) => shell === name) ?? 'bash';
}
