import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../free-port.js';
import { findProgram } from '../programs.js';
import { RunningProgram } from './running-program.js';

/**
 * A PostgreSQL server behind HAProxy, and the port (`checkPort`) at which HAProxy asks Patroni if
 * this server is the leader.
 */
export interface Backend {
  readonly name: string;
  readonly port: number;
  readonly checkPort: number;
}

/**
 * An HAProxy that forwards every connection to the leader, configured as the documentation of
 * Patroni says.
 */
export class Haproxy {
  #program: RunningProgram | undefined;
  /** The processes that {@link reload} replaced. They still forward their open connections. */
  readonly #old: RunningProgram[] = [];

  private constructor(
    readonly port: number,
    private readonly folder: string,
  ) {}

  static async create(folder: string, backends: readonly Backend[]): Promise<Haproxy> {
    const haproxy = new Haproxy(await freePort(), folder);
    writeFileSync(join(folder, 'haproxy.cfg'), configuration(haproxy.port, backends));
    return haproxy;
  }

  get program(): RunningProgram {
    if (!this.#program) throw new Error('HAProxy was not started');
    return this.#program;
  }

  /** Starts HAProxy, and returns when it listens. */
  async start(): Promise<void> {
    const program = this.#begin();
    while (!(await listens(this.port))) {
      if (!program.isRunning) throw new Error('HAProxy ended');
      await delay(20);
    }
  }

  /**
   * Reloads HAProxy: a new process accepts the connections from now on, and the old one only serves
   * those that it has.
   */
  reload(): void {
    const old = this.program;
    this.#old.push(old);
    this.#begin(['-sf', String(old.pid)]);
  }

  async close(): Promise<void> {
    for (const old of this.#old) await old.kill();
    await this.#program?.kill();
  }

  #begin(more: readonly string[] = []): RunningProgram {
    const program = new RunningProgram({
      file: findProgram('haproxy') ?? 'haproxy',
      args: ['-db', '-f', join(this.folder, 'haproxy.cfg'), ...more],
      folder: this.folder,
      logFile: join(this.folder, 'haproxy.log'),
    });
    this.#program = program;
    return program;
  }
}

/**
 * Returns the text of the configuration. HAProxy closes the connections to a server that is no
 * longer the leader, because clients would otherwise wait for its answers.
 */
function configuration(port: number, backends: readonly Backend[]): string {
  const servers = backends.map(
    ({ name, port: own, checkPort }) =>
      `  server ${name} 127.0.0.1:${own} maxconn 100 check port ${checkPort}`,
  );
  return `global
  maxconn 500
defaults
  mode tcp
  retries 2
  timeout connect 2s
  timeout client 30m
  timeout server 30m
  timeout check 2s
listen leader
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  option clitcpka
  default-server inter 1s fastinter 250ms downinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
