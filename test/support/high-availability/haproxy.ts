import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram } from '../programs.js';
import { RunningProgram } from './running-program.js';

/**
 * A PostgreSQL server behind HAProxy. At `checkPort` HAProxy asks Patroni if this server is the
 * leader.
 */
export interface Backend {
  readonly name: string;
  readonly port: number;
  readonly checkPort: number;
}

/** The HTTP API of Patroni on one node. Other nodes reach it through HAProxy. */
export interface Member {
  readonly name: string;
  /** The port at which HAProxy accepts connections to this API. */
  readonly bindPort: number;
  /** The port of the interface itself. */
  readonly port: number;
}

/** An HAProxy program with the settings that the guide for operators recommends. */
export class Haproxy {
  #program: RunningProgram | undefined;
  /** Processes that {@link reload} has replaced, and that still forward their open connections. */
  readonly #old: RunningProgram[] = [];
  readonly #configuration: string;

  /**
   * Writes the configuration file into a folder.
   *
   * @param name the name of the configuration file and the log file
   * @param port a port at which HAProxy listens
   * @param source the loopback address from which it connects, by which a relay recognizes it
   * @param sections the `listen` sections of the configuration
   */
  constructor(
    private readonly folder: string,
    private readonly name: string,
    readonly port: number,
    source: string,
    sections: string,
  ) {
    this.#configuration = join(folder, `${name}.cfg`);
    writeFileSync(
      this.#configuration,
      `global\n  maxconn 500\n${DEFAULTS}  source ${source}\n${sections}`,
    );
  }

  get program(): RunningProgram {
    if (!this.#program) throw new Error('HAProxy was not started');
    return this.#program;
  }

  /** The running program; undefined if HAProxy was not started. */
  get started(): RunningProgram | undefined {
    return this.#program;
  }

  /** Starts HAProxy, and returns when it listens. */
  async start(): Promise<void> {
    const program = this.begin();
    while (!(await listens(this.port))) {
      if (!program.isRunning) throw new Error('HAProxy ended');
      await delay(20);
    }
  }

  /** Starts HAProxy, and does not wait until it listens. */
  begin(more: readonly string[] = []): RunningProgram {
    const program = new RunningProgram({
      file: findProgram('haproxy') ?? 'haproxy',
      args: ['-db', '-f', this.#configuration, ...more],
      folder: this.folder,
      logFile: join(this.folder, `${this.name}.log`),
    });
    this.#program = program;
    return program;
  }

  /**
   * Reloads HAProxy: a new process accepts the connections from now on, and the old one only serves
   * those that it has.
   */
  reload(): void {
    const old = this.program;
    this.#old.push(old);
    this.begin(['-sf', String(old.pid)]);
  }

  async close(): Promise<void> {
    for (const old of this.#old) await old.kill();
    await this.#program?.kill();
  }
}

/**
 * Returns the section that forwards every connection to the leader, as Patroni's documentation
 * shows. If a server is the leader no more, HAProxy closes its connections. Otherwise clients would
 * wait for responses from it.
 */
export function leaderSection(port: number, backends: readonly Backend[]): string {
  const servers = backends.map(
    ({ name, port: own, checkPort }) =>
      `  server ${name} 127.0.0.1:${own} maxconn 100 check port ${checkPort}\n`,
  );
  return `listen leader
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  option clitcpka
  default-server inter 1s fastinter 250ms downinter 250ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('')}`;
}

/**
 * Returns the sections through which the nodes reach the APIs of Patroni on each other. If an API
 * does not answer health checks, HAProxy closes connections to it, so that Patroni does not wait.
 * Every answer counts as healthy, because Patroni itself interprets it.
 */
export function memberSections(members: readonly Member[]): string {
  const sections = members.map(
    ({ name, bindPort, port }) => `listen patroni-${name}
  bind 127.0.0.1:${bindPort}
  option httpchk OPTIONS /patroni
  http-check expect rstatus .
  default-server inter 1s fastinter 250ms downinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
  server ${name} 127.0.0.1:${port} check
`,
  );
  return sections.join('');
}

/** The settings of all sections. */
export const DEFAULTS = `defaults
  mode tcp
  retries 2
  timeout connect 2s
  timeout client 30m
  timeout server 30m
  timeout check 2s
`;

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
