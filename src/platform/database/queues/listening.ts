import { Client, Pool } from 'pg';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';

/** Milliseconds before a lost connection is opened again. */
const PAUSE = 1_000;

/** A connection that receives notifications until it is stopped. */
export interface Listening {
  stop(): Promise<void>;
}

/**
 * Calls a function at each NOTIFY of a channel, by a connection beside the pool. A lost connection
 * is opened again, and then the function is called once, because a notification may be lost. So use
 * notifications only to shorten a wait: work that must happen is in a table, which is also polled.
 *
 * @param channel a constant name
 * @throws TypeError if the pool is not of the pg that this project locks
 */
export function listenTo(
  dataSource: DataSource,
  channel: string,
  act: () => void,
  clock: Clock = systemClock,
): Listening {
  poolOf(dataSource); // a fault of the program must not look like a lost connection
  const stopping = new AbortController();
  let client: Client | undefined;
  const listen = async (): Promise<void> => {
    const lost = Promise.withResolvers<void>();
    client = newClient(dataSource);
    client.on('error', () => lost.resolve());
    client.on('end', () => lost.resolve());
    client.on('notification', act);
    try {
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      act();
      if (!stopping.signal.aborted) await lost.promise;
    } finally {
      void client.end().catch(() => undefined);
    }
  };
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await listen().catch(() => undefined);
      await clock.sleep(PAUSE, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await client?.end().catch(() => undefined);
      await running;
    },
  };
}

function poolOf({ driver }: DataSource): Pool {
  const pool = 'master' in driver ? driver.master : undefined;
  if (pool instanceof Pool) return pool;
  throw new TypeError('The driver has no pool of the pg that this project locks');
}

/** Makes a client with the address of the pool, also if the address has several hosts. */
function newClient(dataSource: DataSource): Client {
  const { options } = poolOf(dataSource);
  // The pool makes each connection in the same way.
  const Driver = (options.Client ?? Client) as typeof Client;
  return new Driver(options);
}
