/** The environment variables of the process. Only this file of the command reads `process.env`. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the environment variables of the process, also those that are empty. */
export function variables(): Variables {
  return process.env;
}

/** Returns an environment variable; undefined if it is unset or empty. */
export function variable(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** The variable by which `svc exec --read-only` marks the environment of its child process. */
export const READ_ONLY = 'SVC_READ_ONLY';

/**
 * Returns true if the environment asks for credentials that can only read. Any value but an empty
 * one counts, so that no spelling of a value means full rights by mistake.
 */
export function isReadOnly(): boolean {
  return variable(READ_ONLY) !== undefined;
}

/** Returns the home folder of the user; undefined if no variable names it. */
export function homeFolder(): string | undefined {
  return variable('HOME') ?? variable('USERPROFILE');
}

/**
 * Prevents a program in the current folder from running in place of one on the PATH. Windows
 * searches the current folder first if the variable that this function sets is missing. Child
 * processes inherit the variable.
 */
export function ignoreCurrentFolder(platform: NodeJS.Platform = process.platform): void {
  if (platform === 'win32') process.env['NoDefaultCurrentDirectoryInExePath'] = '1';
}
