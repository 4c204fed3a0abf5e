import { readFileSync } from 'node:fs';
import type { Config } from '#platform/config/config.js';

/** The parts of the configuration that the start-up line contains. */
export type StartUpFacts = Pick<Config, 'http' | 'database' | 'upstream'>;

/** The version of this package. */
export const VERSION = readVersion();

/** Returns one line about the start: version, address, database and identity providers, without secrets. */
export function startUpLine({ http, database, upstream }: StartUpFacts, port: number): string {
  const providers = upstream.providers.map(({ slug }) => slug).join(', ') || 'none';
  return (
    `svc-server ${VERSION}: ${http.baseUrl} is served on port ${port}; ` +
    `database: ${describeDatabase(database)}; identity providers: ${providers}`
  );
}

function describeDatabase({ url, dataDir }: Config['database']): string {
  if (url === undefined) return `embedded PostgreSQL in ${dataDir}`;
  if (!URL.canParse(url)) return 'PostgreSQL at SVC_DATABASE_URL';
  const { host, pathname, searchParams } = new URL(url); // without user and password
  return `PostgreSQL at ${searchParams.get('host') ?? host}${decodeURI(pathname)}`;
}

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
