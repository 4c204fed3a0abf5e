import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { debianPostgres } from '../debian-postgres.js';
import { freePort } from '../free-port.js';
import { runStatement } from '../one-statement.js';
import { isAlive, signal, withDescendants } from '../processes.js';

const run = promisify(execFile);

/**
 * The user that starts PostgreSQL. If the tests run as root it is `nobody`, because PostgreSQL
 * refuses to run as root.
 */
const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** The settings of each PostgreSQL server that differ from Debian's defaults. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '32MB',
  wal_keep_size: '256MB',
};

/** The options for the start of a PostgreSQL server. */
export interface NodeStart {
  /** For a standby: the port of the relay that leads to the primary. */
  readonly upstream?: number;
  /** Settings that replace those in {@link SETTINGS}. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Variables of the process, such as `LD_PRELOAD`. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * A PostgreSQL server from Debian, on loopback. It may be stopped and started again on the same
 * data directory and port.
 */
export class PostgresNode {
  /**
   * The database in which {@link query} runs statements: at first `postgres`, later the service's.
   */
  database = 'postgres';
  #process: ChildProcess | undefined;

  private constructor(
    readonly name: string,
    readonly port: number,
    private readonly folder: string,
    private readonly programs: string,
  ) {}

  /** Chooses the port and the folder of a server. Its data directory does not exist yet. */
  static async create(folder: string, name: string): Promise<PostgresNode> {
    const programs = debianPostgres();
    if (programs === undefined) throw new Error('no PostgreSQL of Debian is installed');
    return new PostgresNode(name, await freePort(), join(folder, name), programs);
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** Makes a new data directory. */
  async initialize(): Promise<void> {
    await this.#emptyFolder();
    const settings = '-U postgres --auth=trust -E UTF8 --locale=C --no-sync';
    await this.#run('initdb', settings);
  }

  /** Replaces the data directory by a copy of that of the running server at a port. */
  async copyFrom(port: number): Promise<void> {
    await this.#emptyFolder();
    const source = `-h 127.0.0.1 -p ${port} -U postgres`;
    await this.#run('pg_basebackup', `${source} -c fast -X stream --no-sync`);
  }

  /**
   * Starts the server as a primary, or as a standby if `upstream` is set. Returns when it accepts
   * connections.
   */
  async start({ upstream, settings = {}, environment = {} }: NodeStart = {}): Promise<void> {
    const standby: Record<string, string> = {};
    if (upstream !== undefined) {
      await writeFile(join(this.folder, 'standby.signal'), '');
      standby['primary_conninfo'] =
        `host=127.0.0.1 port=${upstream} user=postgres application_name=${this.name}`;
      standby['wal_retrieve_retry_interval'] = '50ms';
    }
    const all = { ...SETTINGS, ...standby, ...settings };
    const child = spawn(
      join(this.programs, 'postgres'),
      [
        '-D',
        this.folder,
        '-p',
        String(this.port),
        ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      { ...USER, cwd: this.folder, env: { ...process.env, ...environment }, stdio: 'ignore' },
    );
    this.#process = child;
    child.once('exit', () => {
      if (this.#process === child) this.#process = undefined;
    });
    while (!(await this.#answers())) {
      if (!this.isRunning) throw new Error(`the PostgreSQL ${this.name} ended`);
      await delay(20);
    }
  }

  /**
   * Stops the server in an orderly way. A primary first sends everything that it has written to its
   * standbys.
   */
  async stop(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    await ended;
  }

  /** Kills the server and each of its processes with SIGKILL, as a power cut does. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child?.pid === undefined) return;
    const ended = once(child, 'exit');
    child.kill('SIGSTOP'); // so that it starts no further process
    const all = withDescendants(child.pid);
    for (const pid of all) signal(pid, 'SIGKILL');
    await ended;
    while (all.some(isAlive)) await delay(5);
  }

  /** Kills the server process of one connection, as the kernel does if memory is short. */
  async killBackend(pid: number): Promise<void> {
    signal(pid, 'SIGKILL');
    while (isAlive(pid)) await delay(5);
  }

  /** Promotes this standby, and returns when it accepts writes. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote(true, 60)');
    while (await this.isStandby()) await delay(5);
  }

  async isStandby(): Promise<boolean> {
    const [row] = await this.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
    return row?.standby === true;
  }

  /** Runs one statement as the superuser in {@link database}, and returns its rows. */
  async query<Row extends object>(text: string, parameters: unknown[] = []): Promise<Row[]> {
    const url = `postgres://postgres@127.0.0.1:${this.port}/${this.database}`;
    return runStatement(url, text, parameters);
  }

  async #answers(): Promise<boolean> {
    return this.query('SELECT 1').then(
      () => true,
      () => false,
    );
  }

  async #emptyFolder(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    await mkdir(this.folder, { mode: 0o700 });
    if (USER.uid !== undefined) await chown(this.folder, USER.uid, USER.gid);
  }

  /**
   * Runs a program of PostgreSQL on the data directory. `words` are its other arguments, separated
   * by spaces.
   */
  async #run(program: string, words: string): Promise<void> {
    const args = [...words.split(' '), '-D', this.folder];
    await run(join(this.programs, program), args, { ...USER, cwd: this.folder });
  }
}
