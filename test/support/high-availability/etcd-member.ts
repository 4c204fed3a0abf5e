import { join } from 'node:path';
import { TcpRelay } from '../failover/tcp-relay.js';
import { freePort } from '../free-port.js';
import { findProgram } from '../programs.js';
import { portsOf } from './client-ports.js';
import { RunningProgram } from './running-program.js';

/**
 * One member of an etcd cluster. Other members connect to it through a relay, by which a test can
 * cut it off.
 */
export class EtcdMember {
  #program: RunningProgram | undefined;

  private constructor(
    readonly name: string,
    readonly clientPort: number,
    private readonly peerPort: number,
    /** The relay through which the other members reach this member. */
    readonly relay: TcpRelay,
    private readonly folder: string,
  ) {}

  static async create(folder: string, name: string): Promise<EtcdMember> {
    const relay = await TcpRelay.start();
    const member = new EtcdMember(name, await freePort(), await freePort(), relay, folder);
    relay.point(member.peerPort);
    return member;
  }

  /**
   * The name of the member and the URL for other members, in the form that the option
   * `--initial-cluster` needs.
   */
  get peer(): string {
    return `${this.name}=http://127.0.0.1:${this.relay.port}`;
  }

  /** Starts the member. A member that ran before keeps its data. */
  start(all: readonly EtcdMember[]): void {
    const client = `http://127.0.0.1:${this.clientPort}`;
    const options = {
      name: this.name,
      'data-dir': join(this.folder, this.name),
      'listen-client-urls': client,
      'advertise-client-urls': client,
      'listen-peer-urls': `http://127.0.0.1:${this.peerPort}`,
      'initial-advertise-peer-urls': `http://127.0.0.1:${this.relay.port}`,
      'initial-cluster': all.map(({ peer }) => peer).join(','),
      'enable-v2': 'true', // the API that Patroni uses here
      'heartbeat-interval': '250',
      'election-timeout': '1500',
    };
    this.#program = new RunningProgram({
      file: findProgram('etcd') ?? 'etcd',
      args: Object.entries(options).flatMap(([name, value]) => [`--${name}=${value}`]),
      folder: this.folder,
      logFile: join(this.folder, `${this.name}.log`),
    });
  }

  get program(): RunningProgram {
    if (!this.#program) throw new Error(`${this.name} was not started`);
    return this.#program;
  }

  /** Returns true if the member says that it has a leader. */
  async isHealthy(): Promise<boolean> {
    const signal = AbortSignal.timeout(1000);
    return fetch(`http://127.0.0.1:${this.clientPort}/health`, { signal })
      .then(async (answer) => ((await answer.json()) as { health: string }).health === 'true')
      .catch(() => false);
  }

  /** Returns true if this member leads the others. */
  async isLeader(): Promise<boolean> {
    const { leader, header } = await this.#ask<Status>('maintenance/status', {});
    return leader === header.member_id;
  }

  /** Makes another member the leader. */
  async handOver(): Promise<void> {
    const { members, header } = await this.#ask<Members>('cluster/member/list', {});
    const other = members.find(({ ID }) => ID !== header.member_id);
    await this.#ask('maintenance/transfer-leadership', { targetID: other?.ID });
  }

  /** Cuts the member off from the other members, and leaves its clients connected. */
  partition(others: readonly EtcdMember[]): void {
    this.relay.partition();
    const pids = this.program.processes();
    let ports: Set<number> | undefined;
    /**
     * Returns the ports of this member's connections. All calls in one turn of the event loop share
     * the result, because it takes long.
     */
    const lookUp = () => {
      setImmediate(() => (ports = undefined));
      return (ports ??= portsOf(pids));
    };
    for (const { relay } of others) relay.partition(({ port }) => lookUp().has(port));
  }

  async close(): Promise<void> {
    await this.#program?.kill();
    await this.relay.close();
  }

  async #ask<Reply>(path: string, body: object): Promise<Reply> {
    const answer = await fetch(`http://127.0.0.1:${this.clientPort}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(2000),
    });
    if (!answer.ok) throw new Error(`etcd: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Reply;
  }
}

interface Header {
  readonly header: { readonly member_id: string };
}

interface Status extends Header {
  readonly leader?: string;
}

interface Members extends Header {
  readonly members: readonly { readonly ID: string }[];
}
