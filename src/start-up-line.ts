import { isIPv6 } from 'node:net';
import type { Config } from '#platform/config/config.js';
import {
  DEFAULT_PORT,
  parseDatabaseUrl,
  type DatabaseHost,
} from '#platform/database/url/database-url.js';
import { VERSION } from '#platform/text/service-version.js';

/** The parts of the configuration that the line about the start contains. */
export type StartUpFacts = Pick<Config, 'http' | 'database' | 'upstream'>;

/**
 * Returns one line about the start: version, base URL, port, database and identity providers,
 * without secrets.
 */
export function startUpLine({ http, database, upstream }: StartUpFacts, port: number): string {
  const providers = upstream.providers.map(({ slug }) => slug).join(', ') || 'none';
  return (
    `svc-server ${VERSION}: ${http.baseUrl} is served on port ${port}; ` +
    `database: ${describeDatabase(database)}; identity providers: ${providers}`
  );
}

/** Describes a database by its hosts and name, or by the folder of the embedded one. */
export function describeDatabase({
  url,
  dataDir,
}: Pick<Config['database'], 'url' | 'dataDir'>): string {
  if (url === undefined) return `embedded PostgreSQL in ${dataDir}`;
  const parsed = parseDatabaseUrl(url); // the user and the password are left out
  if (!parsed) return 'PostgreSQL at SVC_DATABASE_URL';
  return `PostgreSQL at ${parsed.hosts.map(describeHost).join(',')}/${parsed.database}`;
}

function describeHost({ host, port }: DatabaseHost): string {
  const name = isIPv6(host) ? `[${host}]` : host;
  return port === DEFAULT_PORT ? name : `${name}:${port}`;
}
