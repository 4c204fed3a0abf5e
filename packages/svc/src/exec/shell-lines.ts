import type { EnvironmentChange } from '../child/child-environment.js';
import { variable } from '../program/environment.js';

/** The shells for which the lines can be written. */
export const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const;

/** One of the shells in {@link SHELLS}. */
export type Shell = (typeof SHELLS)[number];

/** The writers of a line for a shell. Each quotes a value so that the shell changes nothing. */
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

/** Returns the lines by which a shell makes a change of its environment. */
export function shellLines(shell: Shell, { set, unset }: EnvironmentChange): string[] {
  const writer = WRITERS[shell];
  return [
    ...unset.filter((name) => variable(name) !== undefined).map((name) => writer.unset(name)),
    ...Object.entries(set).map(([name, value]) => writer.set(name, value)),
  ];
}

/** Returns the shell of the user, as the system names it. */
export function usualShell(): Shell {
  if (process.platform === 'win32') return 'powershell';
  const name = (variable('SHELL') ?? '').replace(/^.*\//, '');
  return SHELLS.find((shell) => shell === name) ?? 'bash';
}
