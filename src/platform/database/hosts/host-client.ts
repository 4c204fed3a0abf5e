import { callbackify } from 'node:util';
import { Client, type ClientConfig } from 'pg';
import {
  parseDatabaseUrl,
  type DatabaseUrl,
  type TargetSession,
} from '#platform/database/url/database-url.js';
import { isReadOnly } from '#platform/database/statements/faults.js';
import { HostSearch, NoFittingHost } from './host-search.js';

/**
 * The longest wait for one host in a search, in milliseconds. The pool waits 5 s for a connection.
 */
const ANSWER_WITHIN = 2_000;

/** The address of a database by its URL. */
export interface UrlAddress {
  readonly connectionString: string;
  /**
   * The client that the driver's pool uses, if the URL names several hosts or the state of a
   * server. Undefined for a single host that may have any state, because the driver's own client
   * can reach it.
   */
  readonly Client?: typeof Client;
}

/**
 * Returns the address of the database. Pools that share an address also share the knowledge which
 * host can be used.
 */
export function addressOf(url: string): UrlAddress {
  const parsed = parseDatabaseUrl(url);
  if (!parsed) return { connectionString: url };
  const { hosts, target = 'any' } = parsed;
  if (hosts.length === 1 && target === 'any') return { connectionString: url };
  return { connectionString: hosts[0].url, Client: hostClient(parsed) };
}

/**
 * Makes the class of clients for a URL with several hosts. The pool makes each connection with it.
 */
function hostClient({ hosts, target }: DatabaseUrl): typeof Client {
  const search = new HostSearch(hosts, ({ url }) => assertFit(url, target));

  return class HostClient extends Client {
    constructor(config?: string | ClientConfig) {
      super(config);
      // The driver throws an error that comes after the connection and before the pool adds its
      // listener.
      this.on('error', () => search.doubt());
      this.on('end', () => search.doubt());
      this.connection.on('errorMessage', (fault: unknown) => {
        if (isReadOnly(fault)) search.doubt();
      });
    }

    override connect(): Promise<Client>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<Client> | undefined {
      if (!callback) return this.connectToFit();
      callbackify(() => this.connectToFit())(callback);
      return undefined;
    }

    private async connectToFit(): Promise<Client> {
      const { host, port } = await search.choose();
      Object.assign(this, { host, port });
      try {
        return await super.connect();
      } catch (error) {
        search.doubt();
        throw error;
      }
    }
  };
}

/**
 * Connects to a host, and checks that its server is as the URL demands.
 * @throws Error if the host cannot be reached, does not answer, or is not as the URL demands
 */
async function assertFit(url: string, target: TargetSession = 'any'): Promise<void> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: ANSWER_WITHIN,
    query_timeout: ANSWER_WITHIN,
  });
  client.on('error', () => undefined); // the statement or the connection rejects too
  try {
    await client.connect();
    if (target === 'any') return;
    const { rows } = await client.query<{ standby: boolean; read_only: boolean }>(
      "SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only')::boolean AS read_only",
    );
    if (rows[0]?.standby !== false) throw new NoFittingHost('is a standby');
    if (target === 'read-write' && rows[0].read_only) throw new NoFittingHost('is read-only');
  } finally {
    void client.end();
  }
}
