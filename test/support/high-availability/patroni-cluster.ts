import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeTemporaryDirectory, removeDirectory } from '../temporary-directory.js';
import { EtcdMember } from './etcd-member.js';
import { freePort } from '../free-port.js';
import { Haproxy, leaderSection } from './haproxy.js';
import { withOwnAddress } from './own-address.js';
import { PatroniNode, SYNCHRONOUS_STANDBYS } from './patroni-node.js';

const NODES = ['a', 'b', 'c'] as const;
const MEMBERS = ['etcd-1', 'etcd-2', 'etcd-3'] as const;
const ROLE = 'svc';
const DATABASE = 'svc';

/** The programs that {@link PatroniCluster} needs, besides Debian's PostgreSQL. */
export const CLUSTER_PROGRAMS = ['patroni', 'etcd', 'haproxy', 'curl'] as const;

/**
 * The milliseconds between two looks for the leader. Each look asks all three Patronis, and more
 * looks would slow down the takeover that they wait for.
 */
const LOOKS = 200;

/** The options of the cluster. */
export interface PatroniOptions {
  /** True for Patroni's synchronous mode, in which each COMMIT waits for both standbys. */
  readonly isSynchronous: boolean;
  /** Makes the folder of a node, for example on a file system of its own. */
  readonly prepare?: (folder: string) => void;
  /** Removes what `prepare` made, after every program has ended. */
  readonly release?: () => void;
  /** Returns environment variables for Patroni and PostgreSQL on a node, by its name. */
  readonly environment?: (name: string) => Readonly<Record<string, string>>;
}

/**
 * Three nodes with PostgreSQL and Patroni, three members of etcd, and HAProxy. All are programs of
 * Debian on loopback. The connections between them go through relays, so that a test can cut them.
 */
export class PatroniCluster {
  #leader: PatroniNode | undefined;

  private constructor(
    readonly isSynchronous: boolean,
    private readonly folder: string,
    private readonly release: () => void,
    readonly etcd: readonly EtcdMember[],
    readonly nodes: readonly PatroniNode[],
    readonly haproxy: Haproxy,
  ) {}

  /**
   * Starts all programs, and returns when the leader has two standbys and an empty database for
   * the service. The caller must close the cluster.
   */
  static async start(options: PatroniOptions): Promise<PatroniCluster> {
    const folder = await makeTemporaryDirectory();
    await chmod(folder, 0o755);
    const etcd = await Promise.all(MEMBERS.map((name) => EtcdMember.create(folder, name)));
    const etcdPorts = etcd.map(({ clientPort }) => clientPort);
    const nodes: PatroniNode[] = [];
    for (const [index, name] of NODES.entries()) {
      const own = join(folder, name);
      options.prepare?.(own);
      const address = `127.0.0.${11 + index}`;
      const environment = withOwnAddress(folder, address, options.environment?.(name) ?? {});
      const { isSynchronous } = options;
      nodes.push(
        await PatroniNode.create({
          name,
          address,
          folder: own,
          isSynchronous,
          etcdPorts,
          environment,
        }),
      );
    }
    for (const node of nodes) await node.join(nodes);
    const port = await freePort();
    const backends = nodes.map(({ name, relays }) => ({
      name,
      port: relays.clients.port,
      checkPort: relays.checks.port,
    }));
    const haproxy = new Haproxy(
      folder,
      'haproxy',
      port,
      '127.0.0.10',
      leaderSection(port, backends),
    );
    const cluster = new PatroniCluster(
      options.isSynchronous,
      folder,
      options.release ?? (() => undefined),
      etcd,
      nodes,
      haproxy,
    );
    try {
      await cluster.#begin();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  /**
   * Returns the URL by which a replica of the service reaches the database. `port` is that of
   * HAProxy, or of a relay to HAProxy.
   */
  url(port = this.haproxy.port): string {
    return `postgres://${ROLE}@127.0.0.1:${port}/${DATABASE}`;
  }

  /** Returns the node that accepts writes, as soon as one does. */
  async leader(): Promise<PatroniNode> {
    for (;;) {
      // Takes the first node that answers that it is the leader, because a frozen node answers only
      // after a time-out.
      const asked = this.nodes.map(async (node) => {
        if ((await node.status('primary')) === 200) return node;
        throw new Error(`${node.name} is no leader`);
      });
      const leader = await Promise.any(asked).catch(() => undefined);
      if (leader) {
        this.#leader = leader;
        return leader;
      }
      await delay(LOOKS);
    }
  }

  /** Returns a standby that can take over; in synchronous mode, one that has every commit. */
  async candidate(): Promise<PatroniNode> {
    const question = this.isSynchronous ? 'synchronous' : 'replica';
    for (;;) {
      for (const node of this.nodes) if ((await node.status(question)) === 200) return node;
      await delay(50);
    }
  }

  /** Waits until there is a leader to which two standbys are connected for replication. */
  async untilWhole(): Promise<void> {
    const text = `SELECT count(*)::int AS all,
        count(*) FILTER (WHERE sync_state = 'sync')::int AS synchronous
      FROM pg_stat_replication WHERE state = 'streaming' AND application_name = ANY ($1)`;
    for (;;) {
      const leader = await this.leader();
      const [row] = await leader
        .query<{ all: number; synchronous: number }>(text, [NODES])
        .catch(() => []);
      if (row?.all === 2 && row.synchronous === (this.isSynchronous ? SYNCHRONOUS_STANDBYS : 0))
        return;
      await delay(50);
    }
  }

  /** The leader that `leader()` has found last. Throws if it has found none yet. */
  get primary(): PatroniNode {
    if (!this.#leader) throw new Error('no leader was found yet');
    return this.#leader;
  }

  /** The nodes other than the leader that was found last. */
  get standbys(): readonly PatroniNode[] {
    return this.nodes.filter((node) => node !== this.#leader);
  }

  /** Holds back what the leader sends to its standbys from now on. */
  holdReplication(): void {
    this.primary.relays.replication.hold();
  }

  /** Waits until the standbys have applied everything that the leader has written. */
  async caughtUp(): Promise<void> {
    await this.untilWhole();
    const [written] = await this.primary.query<{ at: string }>('SELECT pg_current_wal_lsn() AS at');
    const text = `SELECT FROM pg_stat_replication WHERE replay_lsn >= '${written?.at}'`;
    while ((await this.primary.query(text)).length < 2) await delay(50);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.haproxy.close();
    await Promise.all(this.nodes.map((node) => node.close()));
    await Promise.all(this.etcd.map((member) => member.close()));
    this.release();
    await removeDirectory(this.folder);
  }

  async #begin(): Promise<void> {
    for (const member of this.etcd) member.start(this.etcd);
    while (!(await this.#isEtcdHealthy())) await delay(50);
    const [first, ...others] = this.nodes;
    first?.start();
    const leader = await this.leader();
    for (const node of others) node.start();
    await this.haproxy.start();
    // In strict synchronous mode these statements return only when the first standby has them.
    await leader.query(`CREATE ROLE ${ROLE} LOGIN`, [], 'postgres');
    await leader.query(`CREATE DATABASE ${DATABASE} OWNER ${ROLE}`, [], 'postgres');
  }

  async #isEtcdHealthy(): Promise<boolean> {
    const healthy = await Promise.all(this.etcd.map((member) => member.isHealthy()));
    return healthy.every(Boolean);
  }
}
