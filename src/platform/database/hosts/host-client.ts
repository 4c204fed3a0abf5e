import { callbackify } from 'node:util';
import { Client, type ClientConfig } from 'pg';
import {
  parseDatabaseUrl,
  type DatabaseUrl,
  type TargetSession,
} from '#platform/database/url/database-url.js';
import { endClient } from '#platform/database/statements/direct-client.js';
import { isReadOnly } from '#platform/database/statements/faults.js';
import { DriverClient } from './driver-client.js';
import { HostSearch, NoFittingHost } from './host-search.js';

/**
 * The longest wait for one host of the URL, in milliseconds. It is less than half of the 5 s that
 * the pool waits for a connection, so that a second host can still be tried.
 */
export const ANSWER_WITHIN = 2_000;

/** The address of a database that is given as a URL. */
export interface UrlAddress {
  readonly connectionString: string;
  /**
   * The class of clients that connects to one of several hosts of the URL, or only to a server that
   * takes writes. Undefined if the URL names one host and accepts it in any state, because any
   * client can then connect.
   */
  readonly Client?: typeof Client;
}

/**
 * Returns the address of the database. Pools that share one address object also share the result of
 * the search for a usable host.
 */
export function addressOf(url: string): UrlAddress {
  const parsed = parseDatabaseUrl(url);
  if (!parsed) return { connectionString: url };
  const { hosts, target = 'any' } = parsed;
  if (hosts.length === 1 && target === 'any') return { connectionString: url };
  return { connectionString: hosts[0].url, Client: hostClient(parsed) };
}

/**
 * Makes the class of clients for a URL with several hosts. The pool makes each connection with it,
 * and each connection goes to a host that can be used now.
 */
function hostClient({ hosts, target }: DatabaseUrl): typeof Client {
  const search = new HostSearch(hosts, ({ url }) => assertFit(url, target));

  return class HostClient extends DriverClient {
    constructor(config?: string | ClientConfig) {
      super(config);
      // The driver may report an error between the connection and the moment when the pool adds its
      // own listener. Without this listener, Node would throw that error and end the process.
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
 * Connects to a host, and checks that its server takes writes if the URL demands that.
 * @throws Error if the host cannot be reached, does not answer, or is not as the URL demands
 */
async function assertFit(url: string, target: TargetSession = 'any'): Promise<void> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: ANSWER_WITHIN,
    query_timeout: ANSWER_WITHIN,
  });
  // The event is ignored, because the promise of the connection or of the statement rejects as
  // well.
  client.on('error', () => undefined);
  try {
    await client.connect();
    if (target === 'any') return;
    const { rows } = await client.query<{ standby: boolean; read_only: boolean }>(
      "SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only')::boolean AS read_only",
    );
    if (rows[0]?.standby !== false) throw new NoFittingHost('is a standby');
    if (target === 'read-write' && rows[0].read_only) throw new NoFittingHost('is read-only');
  } finally {
    endClient(client);
  }
}
