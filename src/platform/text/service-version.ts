import { readFileSync } from 'node:fs';

/** The version of the service, from its package.json. */
export const VERSION = readVersion();

function readVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
