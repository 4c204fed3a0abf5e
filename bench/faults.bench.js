import '../test/support/typescript-hooks.js';
import { table } from './measure.js';

const { FaultScene } = await import('../test/support/high-availability/fault-scene.ts');
const { runFault, violationsOf } = await import('../test/support/high-availability/fault-suite.ts');
const { ALL_FAULTS, SHORT_FAULTS } = await import('../test/support/high-availability/faults.ts');
const { runLaggingRound, startAsynchronous } =
  await import('../test/support/high-availability/lagging-leader.ts');
const { PATRONI_TIMES } = await import('../test/support/high-availability/patroni-node.ts');

/**
 * The number of times that the leader (the primary PostgreSQL) is killed while its standbys lag
 * behind.
 */
const LAGGING_ROUNDS = 2;

/**
 * The seconds by which an outage may be longer than the lease of the leader, which is the `ttl` of
 * Patroni.
 */
const MORE_THAN_TTL = 2;

/**
 * Runs Patroni, etcd, HAProxy and three PostgreSQL servers under two replicas of the service, and
 * causes one fault after the other while requests are sent.
 *
 * @param only `short` for a few faults, `asynchronous` for the rounds of asynchronous replication
 *   alone, or a part of the names of the faults to cause; by default all
 */
export async function run(only = '') {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  const named = ALL_FAULTS.filter(({ name }) => name.includes(only));
  const faults = only === 'short' ? SHORT_FAULTS : named;
  const violations = [];
  if (faults.length > 0) violations.push(...(await inSynchronousMode(faults)));
  if (only === '' || only === 'asynchronous') violations.push(...(await inAsynchronousMode()));
  for (const text of violations) process.stdout.write(`${text}\n`);
  if (violations.length > 0) process.exitCode = 1;
}

async function inSynchronousMode(faults) {
  const hasSmallDisks = process.getuid?.() === 0 && faults.some((one) => one.needsSmallDisks);
  const scene = await FaultScene.start({ hasSmallDisks });
  const rows = [];
  const violations = [];
  try {
    const began = performance.now();
    for (const fault of faults) {
      if (fault.needsSmallDisks && !hasSmallDisks) {
        process.stdout.write(`${fault.name}: skipped, because only root mounts a small disk\n`);
        continue;
      }
      const row = await runFault(scene, fault, (text) => process.stdout.write(`${text}\n`));
      process.stdout.write(`${JSON.stringify(row)}\n`);
      rows.push(row);
      violations.push(...violationsOf(row, fault, PATRONI_TIMES.ttl + MORE_THAN_TTL));
    }
    const all = await scene.brokenSince(began);
    process.stdout.write(`\n${table(rows)}\n\nafter all of them: ${JSON.stringify(all)}\n`);
  } catch (error) {
    process.stdout.write(`${scene.world.service.log().slice(-30).join('\n')}\n`);
    throw error;
  } finally {
    await scene.close();
  }
  return violations;
}

async function inAsynchronousMode() {
  const world = await startAsynchronous();
  const rows = [];
  const violations = [];
  try {
    for (let round = 0; round < LAGGING_ROUNDS; round += 1) {
      const report = await runLaggingRound(world);
      process.stdout.write(`${JSON.stringify(report)}\n`);
      violations.push(...report.violations);
      if (report.named === 0) violations.push('reconcile names no lost event');
      rows.push({
        round: report.scenario,
        'outage s': (report.pause / 1000).toFixed(1),
        answered: report.answered,
        lost: report.lost,
        'equal serials': report.equalSerials,
        undone: report.undone,
        'ended again': report.endedAgain,
        'named by reconcile': report.named,
        violations: report.violations.length,
      });
    }
  } catch (error) {
    process.stdout.write(`${world.service.log().slice(-30).join('\n')}\n`);
    throw error;
  } finally {
    await world.close();
  }
  process.stdout.write(`\n${table(rows)}\n`);
  return violations;
}
