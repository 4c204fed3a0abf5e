import type { Logger } from '@nestjs/common';
import type { Client } from 'pg';
import { systemClock } from '#platform/clock/clock.js';
import { endsWithin } from '#platform/clock/ends-within.js';
import { isDatabaseAway, reasonOf } from '#platform/database/statements/faults.js';
import { commandOf } from './account.js';
import { restrictConnections } from './authentication.js';
import type { Cluster } from './cluster.js';
import { reclaimDirectory } from './reclaim.js';
import { ensureSocketDirectory } from './socket-directory.js';
import { takeSupervisorLock, type SocketAddress } from './supervisor-lock.js';
import { startWatched, type WatchedServer } from './watchdog.js';

/** The pauses between repeated attempts, in milliseconds: the first pause, and the longest. */
export interface Pace {
  readonly first: number;
  readonly longest: number;
}

/**
 * Generates the pauses between attempts, without end: each pause is twice the previous one, up to
 * the longest.
 */
export function* pauses({ first, longest }: Pace): Generator<number, never> {
  for (let pause = first; ; pause = Math.min(pause * 2, longest)) yield pause;
}

/** The server that a {@link Supervisor} runs, and the limits of its supervision. */
export interface ServerOptions {
  readonly postgres: string;
  readonly cluster: Cluster;
  readonly address: SocketAddress;
  /**
   * Settings (`-c name=value`) that replace the defaults of PostgreSQL. With the defaults, no
   * commit is lost in a crash.
   */
  readonly settings: Readonly<Record<string, string>>;
  /** The milliseconds without a response after which the server is killed and started again. */
  readonly patience: number;
  readonly log: Logger;
}

/**
 * The pauses in milliseconds: `ASK` between two checks whether the server responds, and `LAUNCH`
 * between two attempts to start it.
 */
const ASK = { first: 20, longest: 1_000 } as const;
const LAUNCH = { first: 100, longest: 5_000 } as const;

/**
 * The milliseconds within which a server that stops ends the session of its supervisor. Longer
 * silence means that the server is frozen.
 */
const SILENT_AFTER = 3_000;

/**
 * The longest wait in milliseconds for the end of a server that answers. Its fast shutdown may take
 * 10 seconds, and the immediate shutdown that follows kills its processes after 5 seconds.
 */
const LONGEST_STOP = 16_000;

/**
 * Keeps one server running on a cluster. It starts the server again when it ends by itself or stops
 * responding, behind the same socket, so that pools reconnect.
 */
export class Supervisor {
  readonly #stopping = new AbortController();
  #server: WatchedServer | undefined;
  #session: Client | undefined;
  #watching: Promise<void> = Promise.resolve();

  constructor(private readonly options: ServerOptions) {}

  /**
   * Starts the server and resolves when it responds.
   *
   * @throws Error with the server's last lines if it ends instead, or if another process uses
   *   the data directory
   */
  async start(): Promise<void> {
    this.#server = await this.#launch();
    this.#watching = this.#keepRunning(this.#server);
  }

  /**
   * Stops the server (fast shutdown) and resolves when it has ended. A server that does not answer
   * may never end, so that the wait has a time limit. The watchdog then ends the server alone.
   *
   * @returns true if the server has ended
   */
  async stop(): Promise<boolean> {
    this.#stopping.abort();
    const server = this.#server;
    const session = this.#session;
    const answered = session && new Promise((resolve) => void session.once('end', resolve));
    server?.stop();
    const isSilent =
      answered && !(await endsWithin(Promise.race([answered, this.#watching]), SILENT_AFTER));
    if (!isSilent && (await endsWithin(this.#watching, LONGEST_STOP))) return true;
    this.options.log.warn(
      'The embedded PostgreSQL has not ended yet: the stop does not wait for it',
    );
    session?.connection.stream.destroy();
    server?.abandon();
    return false;
  }

  async #keepRunning(server: WatchedServer): Promise<void> {
    const { log } = this.options;
    let running: WatchedServer | undefined = server;
    while (running) {
      const lastWords = await running.ended;
      if (this.#stopping.signal.aborted) return;
      log.error(`PostgreSQL ended by itself (${lastWords}): starting it again`);
      running = await this.#launchPatiently();
    }
  }

  /**
   * Starts the server, and tries again after a failure, because the backends of a killed server
   * need a moment to end. Resolves to undefined if the supervisor is stopped meanwhile.
   */
  async #launchPatiently(): Promise<WatchedServer | undefined> {
    const { signal } = this.#stopping;
    for (const pause of pauses(LAUNCH)) {
      if (signal.aborted) break;
      try {
        return await this.#launch();
      } catch (error) {
        if (signal.aborted) break;
        this.options.log.error(`${reasonOf(error)}. Trying again in ${pause} ms`);
        await systemClock.sleep(pause, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  async #launch(): Promise<WatchedServer> {
    const { postgres, cluster, address, log } = this.options;
    // If the watchdog of a server was killed, the server still runs although nothing supervises it.
    // A server that still runs is stopped before the next server starts.
    await this.#session?.end();
    await reclaimDirectory(cluster.directory, address.socketDir, log);
    await restrictConnections(cluster);
    await ensureSocketDirectory(cluster.account, address.socketDir);
    const server = startWatched(commandOf(cluster.account, postgres, this.#arguments()), {
      account: cluster.account,
      cwd: cluster.directory,
      socketDir: address.socketDir,
      onLine: (line) => log.debug(line),
    });
    this.#server = server;
    if (this.#stopping.signal.aborted) server.stop();
    try {
      await this.#holdLock(server);
      return server;
    } catch (error) {
      server.stop();
      await server.ended;
      throw error;
    }
  }

  #arguments(): string[] {
    const { cluster, address, settings } = this.options;
    const all = {
      listen_addresses: '', // no TCP port at all
      unix_socket_directories: address.socketDir,
      unix_socket_permissions: '0700',
      port: String(address.port),
      log_line_prefix: '', // the log of this process adds the time
      log_min_messages: 'log', // no errors, because their messages quote data
      ...settings,
    };
    const switches = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return ['-D', cluster.directory, ...switches];
  }

  /**
   * Takes the supervisor's lock as soon as the server responds. By default it waits without a
   * limit, because the server may have to recover first.
   * @param deadline the latest time, by the monotonic clock
   * @throws Error with the server's last lines if the server ends first
   */
  async #holdLock(server: WatchedServer, deadline = Number.POSITIVE_INFINITY): Promise<void> {
    for (const pause of pauses(ASK)) {
      if (!server.isRunning()) break;
      try {
        const session = await takeSupervisorLock(this.options.address);
        if (!session) throw new Error('Another process took over the embedded PostgreSQL');
        this.#session = session;
        session.once('end', () => {
          this.#session = undefined;
          void this.#regainLock(server);
        });
        return;
      } catch (error) {
        if (!isDatabaseAway(error) || systemClock.monotonic() >= deadline) throw error;
        await systemClock.sleep(pause);
      }
    }
    throw new Error(`The embedded PostgreSQL does not run: ${await server.ended}`);
  }

  /**
   * Takes the supervisor's lock again after the session that held it was lost: if one process of
   * PostgreSQL is killed, PostgreSQL ends all sessions. If its child processes are killed during
   * recovery, the main process may wait for them without end. So a server that does not respond
   * within `patience` is stopped, and the next one recovers the data.
   */
  async #regainLock(server: WatchedServer): Promise<void> {
    const { log, patience } = this.options;
    try {
      if (this.#stopping.signal.aborted) return;
      await this.#holdLock(server, systemClock.monotonic() + patience);
    } catch (error) {
      // `#keepRunning` reports the end of the server, so it is not reported here as well.
      if (this.#stopping.signal.aborted || !server.isRunning()) return;
      if (!isDatabaseAway(error)) {
        log.error(reasonOf(error));
        return;
      }
      log.error(`PostgreSQL runs, but does not respond (${reasonOf(error)}): ending it`);
      server.stop();
    }
  }
}
