import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@nestjs/common';
import type { Client } from 'pg';
import { isDatabaseAway, reasonOf } from '#platform/database/faults.js';
import { commandOf } from './account.js';
import type { Cluster } from './cluster.js';
import { reclaimDirectory } from './reclaim.js';
import { takeSupervisorLock, type SocketAddress } from './supervisor-lock.js';
import { startWatched, type WatchedServer } from './watchdog.js';

/** What to run, and where. */
export interface ServerOptions {
  readonly postgres: string;
  readonly cluster: Cluster;
  readonly address: SocketAddress;
  /** Settings (`-c name=value`) over PostgreSQL's own defaults, which are durable. */
  readonly settings: Readonly<Record<string, string>>;
  readonly log: Logger;
}

/** In milliseconds. */
const READY_POLL = 20;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;

/**
 * Keeps one server running on a cluster: starts it, and starts it again whenever it ends by itself, behind the same
 * socket, so that pools heal by themselves.
 */
export class Supervisor {
  readonly #stopping = new AbortController();
  #server: WatchedServer | undefined;
  #session: Client | undefined;
  #watching: Promise<void> = Promise.resolve();

  constructor(private readonly options: ServerOptions) {}

  /**
   * Resolves when the server answers.
   *
   * @throws Error when it ends instead, with its last words, or when another process has the data directory
   */
  async start(): Promise<void> {
    this.#server = await this.#launch();
    this.#watching = this.#keepRunning(this.#server);
  }

  /** Stops the server (fast shutdown) and resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#server?.stop();
    await this.#watching;
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

  /** The first attempts may fail: backends of a killed server need a moment to notice and leave. */
  async #launchPatiently(): Promise<WatchedServer | undefined> {
    const { signal } = this.#stopping;
    for (let pause = FIRST_PAUSE; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        return await this.#launch();
      } catch (error) {
        if (signal.aborted) break;
        this.options.log.error(`${reasonOf(error)}. Trying again in ${pause} ms`);
        await delay(pause, undefined, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  async #launch(): Promise<WatchedServer> {
    const { postgres, cluster, address, log } = this.options;
    await this.#session?.end(); // a server whose watchdog was killed is an orphan even with us alive
    await reclaimDirectory(cluster.directory, address.socketDir, log);
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
      log_line_prefix: '', // our own log knows the time
      log_min_messages: 'log', // a refused statement is its caller's business, and quotes its data
      ...settings,
    };
    const switches = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return ['-D', cluster.directory, ...switches];
  }

  /**
   * Takes the supervisor's lock as soon as the server answers, and again whenever its session is lost: one killed
   * backend makes PostgreSQL end them all.
   *
   * @throws Error with the server's last words when it ends instead
   */
  async #holdLock(server: WatchedServer): Promise<void> {
    while (server.isRunning()) {
      try {
        const session = await takeSupervisorLock(this.options.address);
        if (!session) throw new Error('Another process took over the embedded PostgreSQL');
        session.once('end', () => {
          if (this.#stopping.signal.aborted) return;
          this.#holdLock(server).catch((error: unknown) => this.options.log.debug(reasonOf(error)));
        });
        this.#session = session;
        return;
      } catch (error) {
        if (!isDatabaseAway(error)) throw error;
        await delay(READY_POLL);
      }
    }
    throw new Error(`The embedded PostgreSQL does not run: ${await server.ended}`);
  }
}
