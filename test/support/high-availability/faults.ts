import { readdirSync, rmSync, statfsSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { PATRONI_TIMES, type PatroniNode } from './patroni-node.js';
import type { EtcdMember } from './etcd-member.js';
import type { FaultScene } from './fault-scene.js';

/** A fault of one part of the cluster or of the service. */
export interface Fault {
  readonly name: string;
  /** Causes the fault. Returns a function that ends it, if it does not end by itself. */
  begin(scene: FaultScene): Promise<(() => Promise<void> | void) | void>;
  /** The milliseconds between the beginning of the fault and its end. */
  readonly lasts: number;
  /** True if a replica of the service ends, so that requests to it get no answer. */
  readonly endsReplica?: boolean;
  /** True if another node becomes the leader. */
  readonly movesLeader?: boolean;
  /** The seconds that the fault may add to the longest permitted outage. */
  readonly mayAdd?: number;
  /** True if each node needs a small file system for the fault. */
  readonly needsSmallDisks?: boolean;
}

/**
 * The milliseconds of a fault of the leader: longer than the lease of the leader (`ttl`), so that
 * another node takes over.
 */
const TAKE_OVER = (PATRONI_TIMES.ttl + 6) * 1000;

/** The faults of the node that is the leader. */
export const LEADER: readonly Fault[] = [
  {
    name: 'leader: killed',
    lasts: TAKE_OVER,
    movesLeader: true,
    begin: async ({ cluster }) => {
      const leader = await cluster.leader();
      await leader.kill();
      return () => leader.start();
    },
  },
  {
    name: 'leader: frozen',
    lasts: TAKE_OVER,
    movesLeader: true,
    begin: async ({ cluster }) => {
      const leader = await cluster.leader();
      leader.freeze();
      return () => leader.thaw();
    },
  },
  {
    name: 'leader: cut off',
    lasts: TAKE_OVER,
    movesLeader: true,
    begin: async ({ cluster }) => cutOff(cluster.nodes, await cluster.leader()),
  },
  {
    name: 'leader: switched over',
    lasts: 5000,
    movesLeader: true,
    begin: async ({ cluster }) => {
      const leader = await cluster.leader();
      await leader.switchTo(await cluster.candidate());
    },
  },
];

/** The faults of a synchronous standby. The other standby has every commit, too. */
export const STANDBY: readonly Fault[] = [
  {
    name: 'synchronous standby: killed',
    lasts: 10_000,
    begin: async ({ cluster }) => {
      const standby = await cluster.candidate();
      await standby.kill();
      return () => standby.start();
    },
  },
  {
    name: 'synchronous standby: frozen',
    lasts: 15_000,
    begin: async ({ cluster }) => {
      const standby = await cluster.candidate();
      standby.freeze();
      return () => standby.thaw();
    },
  },
  {
    name: 'synchronous standby: cut off',
    lasts: 15_000,
    begin: async ({ cluster }) => cutOff(cluster.nodes, await cluster.candidate()),
  },
];

/**
 * The faults of the HAProxy on each node, through which its Patroni asks the other nodes. If that
 * HAProxy does not answer, Patroni waits for its own time limit of 2 seconds.
 */
export const MEMBERS: readonly Fault[] = [
  {
    name: 'HAProxy of the nodes: frozen',
    lasts: 8000,
    begin: async ({ cluster }) => freezeMemberProxies(cluster.nodes),
  },
  {
    name: 'HAProxy of the nodes and the leader: frozen',
    lasts: TAKE_OVER,
    movesLeader: true,
    mayAdd: 2,
    begin: async ({ cluster }) => {
      const leader = await cluster.leader();
      const thaw = freezeMemberProxies(cluster.nodes);
      leader.freeze();
      return () => {
        leader.thaw();
        thaw();
      };
    },
  },
];

/** The faults of the etcd member that is the leader of etcd. */
export const ETCD: readonly Fault[] = [
  {
    name: 'etcd: killed',
    lasts: 8000,
    begin: async ({ cluster: { etcd } }) => {
      const member = await leaderOf(etcd);
      await member.program.kill();
      return () => member.start(etcd);
    },
  },
  {
    name: 'etcd: frozen',
    lasts: 8000,
    begin: async ({ cluster: { etcd } }) => {
      const { program } = await leaderOf(etcd);
      program.freeze();
      return () => program.thaw();
    },
  },
  {
    name: 'etcd: cut off',
    lasts: 10_000,
    begin: async ({ cluster: { etcd } }) => {
      const member = await leaderOf(etcd);
      member.partition(etcd.filter((other) => other !== member));
      return () => {
        for (const { relay } of etcd) relay.heal();
      };
    },
  },
  {
    name: 'etcd: leadership handed over',
    lasts: 3000,
    begin: async ({ cluster: { etcd } }) => {
      const member = await leaderOf(etcd);
      await member.handOver();
    },
  },
];

/** The faults of the HAProxy before the databases. There is only one, so nothing can take over. */
export const HAPROXY: readonly Fault[] = [
  {
    name: 'HAProxy: killed',
    lasts: 5000,
    begin: async ({ cluster: { haproxy } }) => {
      await haproxy.program.kill();
      return () => haproxy.start();
    },
  },
  {
    name: 'HAProxy: frozen',
    lasts: 8000,
    begin: async ({ cluster: { haproxy } }) => {
      haproxy.program.freeze();
      return () => haproxy.program.thaw();
    },
  },
  {
    name: 'HAProxy: cut off from the nodes',
    lasts: 8000,
    begin: async ({ cluster: { nodes } }) => {
      const relays = nodes.flatMap(({ relays: { clients, checks } }) => [clients, checks]);
      for (const relay of relays) relay.partition();
      return () => {
        for (const relay of relays) relay.heal();
      };
    },
  },
  {
    name: 'HAProxy: reloaded',
    lasts: 3000,
    begin: async ({ cluster: { haproxy } }) => haproxy.reload(),
  },
];

/** The faults of a replica of the service. */
export const REPLICA: readonly Fault[] = [
  {
    name: 'replica: killed',
    lasts: 3000,
    endsReplica: true,
    begin: async ({ world: { service } }) => {
      const number = await service.killReplica();
      return () => service.startReplica(number);
    },
  },
  {
    name: 'replica: frozen',
    lasts: 10_000,
    endsReplica: true,
    begin: async ({ world: { service } }) => {
      service.freezeReplica(true);
      return () => service.freezeReplica(false);
    },
  },
  {
    name: 'replica: cut off from HAProxy',
    lasts: 10_000,
    begin: async ({ relayOfOldest }) => {
      relayOfOldest.partition();
      return () => relayOfOldest.heal();
    },
  },
  {
    name: 'replica: replaced',
    lasts: 1000,
    begin: async ({ world: { service } }) => service.replaceReplica(),
  },
];

/** The faults of the PostgreSQL server itself. */
export const DATABASE: readonly Fault[] = [
  {
    name: 'disk of the leader full',
    lasts: 12_000,
    needsSmallDisks: true,
    begin: async ({ cluster }) => {
      const leader = await cluster.leader();
      const file = fill(leader);
      // Each call needs a new segment of the write-ahead log, for which the disk has no space.
      for (let count = 0; count < 4; count += 1)
        await leader.query('SELECT pg_switch_wal()').catch(() => undefined);
      return () => rmSync(file);
    },
  },
  {
    name: 'max_connections exhausted',
    lasts: 8000,
    begin: async ({ cluster }) => {
      const held = await takeAllConnections(cluster.url(), await cluster.leader());
      return async () => {
        await Promise.all(held.map((client) => client.end().catch(() => undefined)));
      };
    },
  },
  {
    name: 'tables locked',
    lasts: 12_000,
    begin: async ({ cluster }) => {
      const { port } = await cluster.leader();
      const client = new Client(`postgres://postgres@127.0.0.1:${port}/svc`);
      await client.connect();
      await client.query('BEGIN; LOCK TABLE users, ssh_certificates IN ACCESS EXCLUSIVE MODE');
      return () => client.end();
    },
  },
  {
    name: 'all backends ended',
    lasts: 1000,
    begin: async ({ cluster }) => {
      const leader = await cluster.leader();
      await endBackends(leader);
    },
  },
];

/**
 * Faults in which a clock is set forward or back for some seconds. While the clock of Patroni 3.0
 * is behind its earlier time, Patroni does nothing. So a clock that the leader sets back by more
 * than its lease would stop all writes.
 */
export const CLOCK: readonly Fault[] = [
  ...[60, -10].map((seconds) => ({
    name: `clock of the leader: ${seconds > 0 ? '+' : ''}${seconds} s`,
    lasts: 8000,
    begin: async ({ cluster, clocks }: FaultScene) => {
      const { name } = await cluster.leader();
      clocks.get(name)?.step(seconds);
      return () => clocks.get(name)?.step(0);
    },
  })),
  ...[60, -60].map((seconds) => ({
    name: `clock of a replica: ${seconds > 0 ? '+' : ''}${seconds} s`,
    lasts: 8000,
    begin: async ({ clocks }: FaultScene) => {
      clocks.get('replica')?.step(seconds);
      return () => clocks.get('replica')?.step(0);
    },
  })),
];

/** Every fault that the benchmark tests. */
export const ALL_FAULTS: readonly Fault[] = [
  ...LEADER,
  ...STANDBY,
  ...MEMBERS,
  ...ETCD,
  ...HAPROXY,
  ...REPLICA,
  ...DATABASE,
  ...CLOCK,
];

/**
 * The faults of the short form of the benchmark: a killed leader, and faults of several parts that
 * take little time.
 */
export const SHORT_FAULTS: readonly Fault[] = ALL_FAULTS.filter(({ name }) =>
  [
    'leader: killed',
    'leader: switched over',
    'etcd: cut off',
    'HAProxy: killed',
    'replica: killed',
    'max_connections exhausted',
    'all backends ended',
  ].includes(name),
);

function cutOff(nodes: readonly PatroniNode[], node: PatroniNode): () => void {
  node.partition(nodes.filter((other) => other !== node));
  return () => {
    for (const each of nodes) each.heal();
  };
}

function freezeMemberProxies(nodes: readonly PatroniNode[]): () => void {
  for (const { haproxy } of nodes) haproxy.program.freeze();
  return () => {
    for (const { haproxy } of nodes) haproxy.program.thaw();
  };
}

async function leaderOf(etcd: readonly EtcdMember[]): Promise<EtcdMember> {
  for (;;) {
    for (const member of etcd) if (await member.isLeader().catch(() => false)) return member;
    await delay(50);
  }
}

/** Fills the file system of a node with one file, and returns its path. */
function fill(node: PatroniNode): string {
  const { bavail, bsize } = statfsSync(node.data);
  const file = join(node.data, '..', 'filler');
  const bytes = bavail * bsize;
  try {
    execFileSync('fallocate', ['-l', String(bytes), file], { stdio: 'ignore' });
  } catch {
    // another process took the last blocks meanwhile, so the file system is full all the same
  }
  if (!readdirSync(join(node.data, '..')).includes('filler')) throw new Error('no filler');
  return file;
}

/**
 * Takes every connection of PostgreSQL that is not reserved for the superuser. It ends the
 * connections of the service. So the service must connect again, and no connection is free.
 */
async function takeAllConnections(url: string, leader: PatroniNode): Promise<Client[]> {
  const held: Client[] = [];
  await endBackends(leader);
  for (;;) {
    const client = new Client({ connectionString: url, application_name: 'the test' });
    client.on('error', () => undefined);
    try {
      await client.connect();
      held.push(client);
    } catch {
      // No connection was free, but the service may have got some meanwhile. These are ended too.
      if ((await endBackends(leader)) === 0) return held;
    }
  }
}

/** Ends the connections of the service, and returns their number. */
async function endBackends(leader: PatroniNode): Promise<number> {
  const ended = await leader.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE usename = 'svc' AND application_name <> 'the test'`,
  );
  return ended.length;
}
