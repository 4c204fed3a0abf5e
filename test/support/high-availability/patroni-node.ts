import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { debianPostgres } from '../debian-postgres.js';
import { TcpRelay } from '../failover/tcp-relay.js';
import { freePort } from '../free-port.js';
import { runStatement } from '../one-statement.js';
import { isAlive } from '../processes.js';
import { findProgram } from '../programs.js';
import { Haproxy, memberSections } from './haproxy.js';
import { RunningProgram } from './running-program.js';

/**
 * The times of Patroni in seconds. `ttl` is the lease of the leader, and 20 is the least that
 * Patroni accepts. With a `loop_wait` of 2 or more, etcd wakes the standbys when the lease ends.
 * Patroni does not wait for etcd for less than a second, so with 1 they would notice the end only
 * in their next round.
 */
export const PATRONI_TIMES = { ttl: 20, loop_wait: 2, retry_timeout: 5 } as const;

/**
 * The number of standbys for which each COMMIT waits in synchronous mode, as long as so many run.
 * If it were 1, the other standby could have received more than the synchronous one when the leader
 * dies. It would then need `pg_rewind` before it could follow, and no COMMIT would return until
 * then. With 2, Patroni promotes the one that has received more.
 */
export const SYNCHRONOUS_STANDBYS = 2;

/**
 * Returns the shell script that a new leader runs after its promotion. It wakes the Patroni of
 * every node by a change of the configuration that changes nothing. A node that did not try to get
 * the lease would otherwise find the new leader only in its next round, and no COMMIT returns until
 * then.
 *
 * @param ports the ports on loopback at which HAProxy forwards to the Patroni of each node
 */
export function wakingScript(ports: readonly number[]): string {
  return `#!/bin/sh
case "$2" in master | primary) ;; *) exit 0 ;; esac
for port in ${ports.join(' ')}; do
  curl -s -o /dev/null -m 2 -X PATCH -d '{"wake": null}' "http://127.0.0.1:$port/config" &
done
wait
`;
}

/**
 * The user id under which Patroni and PostgreSQL run. If root runs the tests, it is that of
 * `nobody`, because PostgreSQL refuses to run as root. Otherwise it is undefined, for the user of
 * the tests.
 */
export const DATABASE_USER = process.getuid?.() === 0 ? 65_534 : undefined;

/** The options of one node. */
export interface PatroniNodeOptions {
  readonly name: string;
  /** The address of loopback from which the programs of this node connect. */
  readonly address: string;
  /** The folder of its configuration, data and log. */
  readonly folder: string;
  readonly isSynchronous: boolean;
  readonly etcdPorts: readonly number[];
  /** Environment variables of Patroni and PostgreSQL. */
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * The relays to a node, one for each purpose, and the relays from the node to etcd. Cutting all of
 * them has the effect of a network partition.
 */
interface Relays {
  /** For connections that HAProxy forwards to PostgreSQL. */
  readonly clients: TcpRelay;
  /** For other nodes, which use it for replication, copies and `pg_rewind`. */
  readonly replication: TcpRelay;
  /** For the HTTP API of Patroni, which every HAProxy checks. */
  readonly checks: TcpRelay;
  /**
   * For other nodes that want to reach this node's Patroni API. On real machines they would use an
   * address of their own HAProxy. The relay does the same: it forwards a connection to the HAProxy
   * of the node that the connection comes from.
   */
  readonly members: TcpRelay;
  /** From Patroni to each member of etcd. */
  readonly etcd: readonly TcpRelay[];
}

/**
 * One machine of the cluster. It runs Patroni, the PostgreSQL that Patroni starts, and an HAProxy
 * by which this Patroni reaches the other ones.
 */
export class PatroniNode {
  #program: RunningProgram | undefined;
  #haproxy: Haproxy | undefined;
  /**
   * The ports at which this machine's HAProxy forwards to the Patroni API of a node, by the node's
   * name.
   */
  readonly #memberPorts = new Map<string, number>();

  private constructor(
    readonly name: string,
    readonly port: number,
    private readonly restPort: number,
    readonly relays: Relays,
    private readonly options: PatroniNodeOptions,
  ) {}

  /** Starts the relays of a node, and writes its configuration. */
  static async create(options: PatroniNodeOptions): Promise<PatroniNode> {
    const start = async (target: number) => {
      const relay = await TcpRelay.start();
      relay.point(target);
      return relay;
    };
    const [port, restPort] = [await freePort(), await freePort()];
    const relays = {
      clients: await start(port),
      replication: await start(port),
      checks: await start(restPort),
      members: await TcpRelay.start(),
      etcd: await Promise.all(options.etcdPorts.map(start)),
    };
    const node = new PatroniNode(options.name, port, restPort, relays, options);
    mkdirSync(options.folder, { recursive: true });
    if (DATABASE_USER !== undefined) chownSync(options.folder, DATABASE_USER, DATABASE_USER);
    writeFileSync(join(options.folder, 'patroni.json'), JSON.stringify(node.#configuration()));
    return node;
  }

  /**
   * Configures the HAProxy and the relay by which the nodes reach each other's Patroni API, and
   * writes the script that wakes the others.
   */
  async join(all: readonly PatroniNode[]): Promise<void> {
    const members = [];
    for (const { name, relays } of all) {
      const bindPort = await freePort();
      this.#memberPorts.set(name, bindPort);
      members.push({ name, bindPort, port: relays.checks.port });
    }
    writeFileSync(this.#waking, wakingScript([...this.#memberPorts.values()]));
    const port = this.#memberPorts.get(this.name) ?? Number.NaN;
    this.#haproxy = new Haproxy(
      this.options.folder,
      'haproxy',
      port,
      this.options.address,
      memberSections(members),
    );
    this.relays.members.pointBy(({ address }) => {
      const from = all.find((node) => node.options.address === address);
      return from && from.#memberPorts.get(this.name);
    });
  }

  /** The HAProxy by which this Patroni reaches the other ones. */
  get haproxy(): Haproxy {
    if (!this.#haproxy) throw new Error(`${this.name} has not joined a cluster`);
    return this.#haproxy;
  }

  /** Returns the process ids of all programs of this machine. */
  processes(): number[] {
    return this.#programs().flatMap((program) => program.processes());
  }

  /** Stops all processes of the machine (SIGSTOP), which they cannot notice. */
  freeze(): void {
    for (const program of this.#programs()) program.freeze();
  }

  /** Continues the stopped processes. */
  thaw(): void {
    for (const program of this.#programs()) program.thaw();
  }

  /** Kills all processes of the machine, as a power failure would. */
  async kill(): Promise<void> {
    this.freeze(); // so that none reacts to the end of another one
    await Promise.all(this.#programs().map((program) => program.kill()));
  }

  /** The folder of the data of PostgreSQL. */
  get data(): string {
    return join(this.options.folder, 'data');
  }

  get logFile(): string {
    return join(this.options.folder, 'patroni.log');
  }

  /** The file of the {@link wakingScript}. */
  get #waking(): string {
    return join(this.options.folder, 'wake-others');
  }

  start(): void {
    this.haproxy.begin();
    this.#program = new RunningProgram({
      file: findProgram('patroni') ?? 'patroni',
      // The file is JSON, which is also YAML, the format of Patroni.
      args: [join(this.options.folder, 'patroni.json')],
      folder: this.options.folder,
      logFile: this.logFile,
      uid: DATABASE_USER,
      environment: this.options.environment,
      detached: () => this.#postmaster(),
    });
  }

  /**
   * Returns the HTTP status of Patroni's answer to a question about the node's role, such as
   * `primary`. The status 200 means yes, and 0 means that there was no answer.
   */
  async status(question: string): Promise<number> {
    const signal = AbortSignal.timeout(2000);
    return fetch(`http://127.0.0.1:${this.restPort}/${question}`, { signal })
      .then(async (answer) => {
        await answer.arrayBuffer();
        return answer.status;
      })
      .catch(() => 0);
  }

  /** Runs one statement as the superuser, and returns its rows. */
  async query<Row extends object>(
    text: string,
    parameters: unknown[] = [],
    database = 'svc',
  ): Promise<Row[]> {
    const url = `postgres://postgres@127.0.0.1:${this.port}/${database}`;
    return runStatement(url, text, parameters);
  }

  /** Asks Patroni for a planned switchover from this node to another. */
  async switchTo(other: PatroniNode): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${this.haproxy.port}/switchover`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ leader: this.name, candidate: other.name }),
    });
    if (!answer.ok) throw new Error(`Patroni: ${answer.status} ${await answer.text()}`);
  }

  /** Cuts the machine off from the others, from etcd and from HAProxy. */
  partition(others: readonly PatroniNode[]): void {
    const { clients, replication, checks, etcd } = this.relays;
    for (const relay of [clients, replication, checks, ...etcd]) relay.partition();
    const own = this.options.address;
    for (const { relays } of others)
      for (const relay of [relays.replication, relays.checks])
        relay.partition(({ address }) => address === own);
  }

  /** Ends every partition at the relays of this machine. */
  heal(): void {
    for (const relay of this.#allRelays()) relay.heal();
  }

  async close(): Promise<void> {
    this.thaw();
    await this.kill();
    for (const relay of this.#allRelays()) await relay.close();
  }

  /**
   * Returns the process id of PostgreSQL; undefined if it does not run. It is no child process of
   * the Patroni that started it.
   */
  #postmaster(): number | undefined {
    try {
      const pid = Number(readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n')[0]);
      const isOurs = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(this.data);
      return isOurs && isAlive(pid) ? pid : undefined;
    } catch {
      return undefined; // PostgreSQL does not run
    }
  }

  /** Returns the programs of this machine that were started. */
  #programs(): RunningProgram[] {
    const programs = [this.#program, this.#haproxy?.started];
    return programs.filter((program) => program !== undefined);
  }

  #allRelays(): TcpRelay[] {
    const { clients, replication, checks, members, etcd } = this.relays;
    return [clients, replication, checks, members, ...etcd];
  }

  #configuration(): object {
    const address = (port: number) => `127.0.0.1:${port}`;
    const { folder, name, isSynchronous } = this.options;
    return {
      scope: 'svc',
      name,
      restapi: {
        listen: address(this.restPort),
        connect_address: address(this.relays.members.port),
      },
      // With etcd's newer API (`etcd3`), Patroni 3.0 writes the lease of the leader without
      // comparing it first. A leader that was frozen would take the lease back from its successor.
      // Patroni 4 compares.
      [isVersion4() ? 'etcd3' : 'etcd']: {
        hosts: this.relays.etcd.map(({ port }) => address(port)),
        use_proxies: true, // so that Patroni reaches etcd through the relays alone
      },
      bootstrap: {
        dcs: {
          ...PATRONI_TIMES,
          maximum_lag_on_failover: 64 * 1024 * 1024,
          synchronous_mode: isSynchronous,
          synchronous_mode_strict: isSynchronous,
          synchronous_node_count: SYNCHRONOUS_STANDBYS,
          postgresql: { use_pg_rewind: true, use_slots: false, parameters: PARAMETERS },
        },
        initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums', 'no-sync'],
      },
      postgresql: {
        listen: address(this.port),
        connect_address: address(this.relays.replication.port),
        callbacks: { on_role_change: `sh ${this.#waking}` },
        data_dir: this.data,
        bin_dir: debianPostgres(),
        pgpass: join(folder, 'pgpass'),
        pg_hba: ['host all all 127.0.0.0/8 trust', 'host replication all 127.0.0.0/8 trust'],
        basebackup: [{ checkpoint: 'fast' }, 'no-sync'],
        authentication: {
          superuser: { username: 'postgres', password: 'postgres' },
          replication: { username: 'replicator', password: 'replicator' },
          rewind: { username: 'postgres', password: 'postgres' },
        },
        parameters: { unix_socket_directories: '' },
      },
    };
  }
}

/** Returns true if the installed Patroni is of version 4 or later. */
function isVersion4(): boolean {
  const text = execFileSync(findProgram('patroni') ?? 'patroni', ['--version'], {
    encoding: 'utf8',
  });
  return Number(/(\d+)\./.exec(text)?.[1]) >= 4;
}

/**
 * The settings of PostgreSQL that Patroni manages. Because of the short timeouts, commits do not
 * wait long for a standby that vanished. Because of the short interval, a standby soon follows the
 * request to promote, and soon connects to a new leader, whose commits wait for it. Both wait for
 * the end of the interval since the last failed connection to the dead leader.
 */
export const PARAMETERS = {
  wal_retrieve_retry_interval: '100ms',
  max_connections: 60,
  shared_buffers: '32MB',
  wal_sender_timeout: '5s',
  wal_receiver_timeout: '5s',
  tcp_user_timeout: '10s',
  min_wal_size: '32MB',
  max_wal_size: '64MB',
  wal_keep_size: '64MB',
} as const;
