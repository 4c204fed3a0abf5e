import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { adminProcess } from '../break-glass.js';
import { FailoverWorld } from '../failover/failover-world.js';
import { runRound, type RoundReport, type Scenario } from '../failover/round.js';
import { makeTemporaryDirectory, removeDirectory } from '../temporary-directory.js';
import { PatroniCluster } from './patroni-cluster.js';

/** The milliseconds without replication before the leader is killed. */
const LAG = 2500;

/**
 * The service seals the audit log every 60 seconds. Replication stops 58.7 seconds after a seal, so
 * that the standbys lack the next seal, and the failover loses it.
 */
const SEALING = { every: 60, lagFrom: 58.7 } as const;

/**
 * The results of a round, and the number of lost events that the operator's command `reconcile`
 * finds afterwards.
 */
export interface LaggingReport extends RoundReport {
  /** The number of sealed audit events that `reconcile` reports as lost. */
  readonly named: number;
}

/** Starts a cluster with asynchronous replication, and the other parts of a failover test on it. */
export async function startAsynchronous(): Promise<FailoverWorld<PatroniCluster>> {
  const cluster = await PatroniCluster.start({ isSynchronous: false });
  return FailoverWorld.on(cluster, () => cluster.url(), {
    people: 2,
    gap: 50,
    isChecked: true,
    environment: { SVC_DATABASE_FAILOVER: 'asynchronous' },
  });
}

/**
 * Kills the leader while its standbys lack the commits of at least 2.5 seconds and a seal of the
 * audit log. Then runs `node dist/admin.js reconcile`, which compares the published checkpoints
 * with the database.
 */
export async function runLaggingRound(
  world: FailoverWorld<PatroniCluster>,
): Promise<LaggingReport> {
  const report = await runRound(world, LAGGING_LEADER);
  await world.cluster.untilWhole();
  return { ...report, named: await namedByReconcile(world) };
}

/** The number of checkpoints in the logs of the service just before replication was stopped. */
let published = 0;

const LAGGING_LEADER: Scenario<PatroniCluster> = {
  name: 'leader killed with lag',
  isLossy: true,
  lag: LAG,
  beforeLag: async (world) => {
    await untilSealingIsDue(world.cluster);
    published = checkpointsOf(world).length;
  },
  change: async (world) => {
    while (checkpointsOf(world).length === published) await delay(20);
    const { cluster } = world;
    const old = await cluster.leader();
    const { replication } = old.relays;
    replication.point(undefined); // the bytes that were held back are lost
    await old.kill();
    replication.release();
    replication.point(old.port);
    while ((await cluster.leader()) === old) await delay(50);
    old.start();
  },
};

/** Waits until the next seal of the audit log is about a second away. */
async function untilSealingIsDue(cluster: PatroniCluster): Promise<void> {
  for (;;) {
    const leader = await cluster.leader();
    const [row] = await leader.query<{ age: number }>(
      'SELECT extract(epoch FROM clock_timestamp() - round_at)::float8 AS age FROM audit_seal',
    );
    if (row && row.age >= SEALING.lagFrom && row.age < SEALING.every) return;
    await delay(50);
  }
}

/**
 * Returns the lines of the service's log that publish a checkpoint (signed tree head) of the audit
 * log.
 */
function checkpointsOf({ service }: FailoverWorld<PatroniCluster>): string[] {
  return service.log().filter((line) => line.includes('audit_checkpoint'));
}

async function namedByReconcile(world: FailoverWorld<PatroniCluster>): Promise<number> {
  const folder = await makeTemporaryDirectory();
  const file = join(folder, 'checkpoints');
  writeFileSync(file, checkpointsOf(world).join('\n'));
  const { cluster } = world;
  const composition = (name: string) =>
    cluster.primary.query('UPDATE deployment SET composition = $1', [name]);
  // The operator's command accepts only a database that is marked as one of production.
  await composition('production');
  const command = ['reconcile', '--checkpoints', file, '--yes', '--json'];
  const done = await adminProcess(command, { url: cluster.url() });
  await composition('test');
  await removeDirectory(folder);
  if (done.status !== 0) throw new Error(`reconcile: ${done.stderr}`);
  const { gaps } = JSON.parse(done.stdout) as {
    gaps: readonly { published: number; kept: number }[];
  };
  return gaps.reduce((sum, gap) => sum + gap.published - gap.kept, 0);
}
