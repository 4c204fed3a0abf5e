import { chown, chmod } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { closing } from './closing.js';
import { PostgresNode, type NodeStart } from './failover/postgres-node.js';
import { TcpRelay } from './failover/tcp-relay.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';

const NODES = ['a', 'b', 'c'] as const;
const ROLE = 'svc';
const DATABASE = 'svc';

/** The options of the replicated PostgreSQL. */
export interface ClusterOptions {
  /** The number of standbys; by default 1. */
  readonly standbys?: 1 | 2;
  /** True if each COMMIT waits for a standby. By default replication is asynchronous. */
  readonly isSynchronous?: boolean;
  /** Settings of each server that replace Debian's defaults. */
  readonly settings?: Readonly<Record<string, string>>;
}

interface Member {
  readonly node: PostgresNode;
  /** The relay through which this server gets data from the primary, if it is a standby. */
  readonly relay: TcpRelay;
}

/**
 * A primary and standbys of Debian's PostgreSQL on loopback, with streaming replication through
 * relays. A relay can hold back bytes, so that a test can kill the primary before a standby has its
 * commits. One URL always leads to the primary, as it would through HAProxy.
 */
export class ReplicatedPostgres {
  readonly #isSynchronous: boolean;
  readonly #settings: Readonly<Record<string, string>>;
  #primary: Member;
  #isHeld = false;

  private constructor(
    private readonly folder: string,
    private readonly members: readonly [Member, ...Member[]],
    private readonly front: TcpRelay,
    { isSynchronous = false, settings = {} }: ClusterOptions,
  ) {
    this.#isSynchronous = isSynchronous;
    this.#settings = settings;
    [this.#primary] = members;
  }

  /**
   * Starts the primary, with an empty database and its role, and the standbys. The caller must
   * close them.
   */
  static async start(options: ClusterOptions = {}): Promise<ReplicatedPostgres> {
    const folder = await makeTemporaryDirectory();
    await chmod(folder, 0o755);
    if (process.getuid?.() === 0) await chown(folder, 65_534, 65_534);
    const names = NODES.slice(0, 1 + (options.standbys ?? 1));
    const members = await Promise.all(
      names.map(async (name) => ({
        node: await PostgresNode.create(folder, name),
        relay: await TcpRelay.start(),
      })),
    );
    const [first, ...others] = members;
    if (!first) throw new Error('a cluster has a primary');
    const cluster = new ReplicatedPostgres(
      folder,
      [first, ...others],
      await TcpRelay.start(),
      options,
    );
    await cluster.#begin();
    return cluster;
  }

  /** The server that accepts writes. While there is none, it is the last server that did. */
  get primary(): PostgresNode {
    return this.#primary.node;
  }

  /**
   * The running servers other than the primary. After a promotion, they do not replicate from the
   * new primary until {@link rejoin}.
   */
  get standbys(): readonly PostgresNode[] {
    return this.#others()
      .map(({ node }) => node)
      .filter((node) => node.isRunning);
  }

  /** The URL of the database that always leads to the primary. */
  get url(): string {
    return `postgres://${ROLE}@127.0.0.1:${this.front.port}/${DATABASE}`;
  }

  /**
   * A URL with the addresses of all servers. The client itself must find the primary among them.
   */
  get hosts(): string {
    const hosts = this.members.map(({ node }) => `127.0.0.1:${node.port}`).join(',');
    return `postgres://${ROLE}@${hosts}/${DATABASE}?target_session_attrs=read-write`;
  }

  /**
   * From now on, holds back the bytes that the primary sends to its standbys. If the primary is
   * killed before the release, its commits from that time are lost.
   */
  holdReplication(): void {
    this.#isHeld = true;
    for (const { relay } of this.#others()) relay.hold();
  }

  /** Sends the standbys the bytes that were held back. */
  releaseReplication(): void {
    this.#isHeld = false;
    for (const { relay } of this.members) relay.release();
  }

  /**
   * Kills all processes of the primary. Connections through {@link url} end, and new ones are
   * refused.
   */
  async killPrimary(): Promise<void> {
    // Cuts the relays first, so that the standbys do not get the last bytes any more.
    for (const { relay } of this.#others()) relay.point(undefined);
    await this.primary.kill();
    this.front.point(undefined);
  }

  /**
   * Makes a standby the primary, and lets the proxy lead to it. Other standbys do not replicate
   * from it until {@link rejoin} is called.
   */
  async promote(standby = this.standbys[0]): Promise<void> {
    const member = this.members.find(({ node }) => node === standby);
    if (!member?.node.isRunning) throw new Error('there is no standby to promote');
    await member.node.promote();
    this.#primary = member;
    // No standby replicates from the new primary yet. In synchronous mode each COMMIT would
    // therefore wait without end.
    await this.#setSynchronous(false);
    this.front.point(member.node.port);
    member.relay.point(undefined);
    this.releaseReplication();
  }

  /**
   * Does a planned switchover: stops the primary when the standby has all commits, promotes the
   * standby, and makes the old primary a standby.
   */
  async switchover(): Promise<void> {
    const old = this.#primary;
    await this.caughtUp();
    await old.node.stop();
    this.front.point(undefined);
    await this.promote();
    for (const { relay } of this.#others()) relay.point(this.primary.port);
    await old.node.start(this.#standby(old));
    await this.#setSynchronous();
    await this.caughtUp();
  }

  /** Restarts the primary. It is stopped by SIGINT, or killed if `isKilled` is true. */
  async restart({ isKilled = false } = {}): Promise<void> {
    await (isKilled ? this.primary.kill() : this.primary.stop());
    this.front.cut();
    await this.primary.start({ settings: this.#settings });
    await this.#setSynchronous();
    await this.caughtUp();
  }

  /**
   * Replaces the data of every other server by a copy of the primary's. The servers then replicate
   * from it.
   */
  async rejoin(environment: NodeStart['environment'] = {}): Promise<void> {
    await Promise.all(
      this.#others().map(async (member) => {
        await member.node.stop();
        await member.node.copyFrom(this.primary.port);
        member.relay.point(this.primary.port);
        await member.node.start({ ...this.#standby(member), environment });
      }),
    );
    await this.#setSynchronous();
    await this.caughtUp();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.releaseReplication();
    const killed = Promise.all(this.members.map(({ node }) => node.kill()));
    await closing('the PostgreSQL servers', killed);
    const relays = [this.front, ...this.members.map(({ relay }) => relay)];
    await closing('the relays', Promise.all(relays.map((relay) => relay.close())));
    await removeDirectory(this.folder);
  }

  async #begin(): Promise<void> {
    await this.primary.initialize();
    await this.primary.start({ settings: this.#settings });
    await this.primary.query(`CREATE ROLE ${ROLE} LOGIN`);
    await this.primary.query(`CREATE DATABASE ${DATABASE} OWNER ${ROLE}`);
    for (const { node } of this.members) node.database = DATABASE;
    await this.rejoin();
    this.front.point(this.primary.port);
  }

  #others(): Member[] {
    return this.members.filter((member) => member !== this.#primary);
  }

  #standby({ relay }: Member): NodeStart {
    return { upstream: relay.port, settings: this.#settings };
  }

  async #setSynchronous(hasStandby = true): Promise<void> {
    if (!this.#isSynchronous) return;
    const names = hasStandby ? '*' : '';
    await this.primary.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await this.primary.query('SELECT pg_reload_conf()');
  }

  /** Waits until every running standby has applied everything that the primary has written. */
  async caughtUp(): Promise<void> {
    if (this.#isHeld) throw new Error('replication is held back');
    const [written] = await this.primary.query<{ at: string }>('SELECT pg_current_wal_lsn() AS at');
    const text = `SELECT FROM pg_stat_replication
      WHERE state = 'streaming' AND replay_lsn >= '${written?.at}'`;
    for (;;) {
      const { length } = await this.primary.query(text);
      if (length >= this.standbys.length) return;
      await delay(20);
    }
  }
}
