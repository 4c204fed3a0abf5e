import { readFileSync } from 'node:fs';

const FOLDER = new URL('host/', import.meta.url);

/**
 * Matches a line `#include FILE` of a script. The line is replaced by the content of that file,
 * which is in the same folder.
 */
const INCLUDE = /^#include (\S+)$/gm;

/**
 * Composes `/install-host.sh`, for a service with this base URL, from the files in `host/`. The
 * script contains the program that refreshes the revocation list, and the units of systemd, so that
 * a host needs only one request.
 *
 * @throws Error if the base URL has a character that the shell, systemd or cron would read in
 *   another way
 */
export function hostScript(baseUrl: string): string {
  if (!/^https?:\/\/[A-Za-z0-9._:[\]-]+$/.test(baseUrl)) {
    throw new Error(`the base URL ${baseUrl} has characters that no script can hold`);
  }
  return withIncludes('install-host.sh').replaceAll('@BASE_URL@', baseUrl);
}

function withIncludes(name: string): string {
  const text = readFileSync(new URL(name, FOLDER), 'utf8');
  return text.replace(INCLUDE, (_, included: string) => withIncludes(included).trimEnd());
}
