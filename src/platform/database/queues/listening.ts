import type { Client } from 'pg';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { endClient, newDirectClient, poolOf } from '#platform/database/statements/direct-client.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';

/** The milliseconds before a lost connection is opened again. */
const PAUSE = 1_000;

/** A connection that receives notifications until it is stopped. */
export interface Listening {
  stop(): Promise<void>;
}

/** The connections that receive notifications, one for each database. */
const connections = new WeakMap<DataSource, ListeningConnection>();

/** A function that is called with the text of a notification; empty if any may have been lost. */
type Act = (payload: string) => void;

/**
 * Calls a function at each NOTIFY of a channel. All channels share one connection beside the pool.
 * After a lost connection was opened again, the function is called once, because a notification may
 * have been lost. So use notifications only to shorten a wait: work that must happen is in a table,
 * which the caller also polls.
 *
 * @param channel a constant name, because it becomes a part of an SQL statement. Only one caller
 *   may listen to a channel
 * @throws TypeError if the pool of the data source is not a `Pool` of the installed package `pg`
 */
export function listenTo(
  dataSource: DataSource,
  channel: string,
  act: Act,
  clock: Clock = systemClock,
): Listening {
  poolOf(dataSource); // throws now: in the loop, the error would count as a lost connection
  const connection = connections.get(dataSource) ?? new ListeningConnection(dataSource, clock);
  connections.set(dataSource, connection);
  connection.add(channel, act);
  return {
    async stop() {
      if (!connection.remove(channel)) return;
      connections.delete(dataSource);
      await connection.close();
    },
  };
}

/** The connection to a database that listens to the channels of all its queues. */
class ListeningConnection {
  readonly #acts = new Map<string, Act>();
  readonly #stopping = new AbortController();
  #client: Client | undefined;
  #isConnected = false;
  #running: Promise<void> | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Adds a channel, and the function that is called at each of its notifications. */
  add(channel: string, act: Act): void {
    this.#acts.set(channel, act);
    this.#running ??= this.#run();
    // If this LISTEN fails, the connection is opened again, and then listens to every channel.
    if (this.#isConnected) this.#listen(channel, act).catch(() => undefined);
  }

  /**
   * Removes a channel. Returns true if no channel is left, so that the connection can be closed.
   */
  remove(channel: string): boolean {
    this.#acts.delete(channel);
    return this.#acts.size === 0;
  }

  /** Closes the connection for good, without waiting for the server. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#connect().catch(() => undefined);
      this.#isConnected = false;
      await this.clock.sleep(PAUSE, { signal }).catch(() => undefined);
    }
  }

  /**
   * Opens the connection and listens, until the connection is lost or closed.
   *
   * @throws the error of pg if the connection cannot be opened, or a LISTEN fails
   */
  async #connect(): Promise<void> {
    const { signal } = this.#stopping;
    const lost = Promise.withResolvers<void>();
    const lose = () => lost.resolve();
    // A LISTEN belongs to a session, which a pooler in transaction mode does not keep.
    const client = newDirectClient(this.dataSource);
    this.#client = client;
    client.on('error', lose);
    client.on('end', lose);
    client.on('notification', ({ channel, payload = '' }) => this.#acts.get(channel)?.(payload));
    signal.addEventListener('abort', lose, { once: true });
    try {
      // The promise of pg's `connect` never settles if the client is ended meanwhile.
      await Promise.race([this.#begin(client), lost.promise]);
      await lost.promise;
    } finally {
      signal.removeEventListener('abort', lose);
      endClient(client);
    }
  }

  async #begin(client: Client): Promise<void> {
    await client.connect();
    this.#isConnected = true;
    for (const [channel, act] of this.#acts) await this.#listen(channel, act);
  }

  async #listen(channel: string, act: Act): Promise<void> {
    await this.#client?.query(`LISTEN ${channel}`);
    act('');
  }
}
