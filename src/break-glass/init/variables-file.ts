import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { systemRandom } from '#platform/clock/random.js';
import type { Environment } from '#platform/config/environment.js';

/**
 * Returns the line `NAME=value` of a variable. The value is quoted so that systemd
 * (`EnvironmentFile=`), Node (`--env-file`) and Compose (`.env`) read the same value.
 *
 * @throws Error for a value that no quotation makes equal for the three programs; the message never
 *   contains the value
 */
export function lineOf(name: string, value: string): string {
  if (/^[\w@%+=:,./?&*~-]*$/.test(value)) return `${name}=${value}`;
  if (/^[^'\p{Cc}]*$/u.test(value)) return `${name}='${value}'`;
  if (/^[^"\\$`\p{Cc}]*$/u.test(value)) return `${name}="${value}"`;
  throw new Error(
    `${name}: a value with these characters cannot be in a file of variables. Use another one; for a certificate, name its file.`,
  );
}

/** Reads a file of variables, or the standard input for `-`; undefined if there is no such file. */
export function readVariables(path: string): Environment | undefined {
  try {
    return parseEnv(readFileSync(path === '-' ? 0 : path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Writes a file of variables that only its owner can read (mode 0600). Another process sees either
 * the old file or the complete new one.
 *
 * @param mayReplace false if the file must not exist yet
 * @throws Error if the file exists and may not be replaced, or cannot be written
 */
export function writeVariables(
  path: string,
  lines: readonly string[],
  { mayReplace }: { readonly mayReplace: boolean },
): void {
  const fresh = join(dirname(path), `.init-${systemRandom.token(9)}`);
  writeFileSync(fresh, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' });
  try {
    if (mayReplace) renameSync(fresh, path);
    else linkSync(fresh, path); // fails if a file was made there meanwhile
  } finally {
    rmSync(fresh, { force: true });
  }
}
