import '../test/support/typescript-hooks.js';
import { table } from './measure.js';

const { runKills } = await import('../test/support/high-availability/replica-kills.ts');

/** The numbers of replicas that are tried. */
const REPLICAS = [2, 4];

/**
 * Kills one replica of the service every 10 seconds, starts it again, and compares everything that
 * the replicas acknowledged with the database.
 *
 * @param minutes the length of the run with each number of replicas
 */
export async function run(minutes = '10') {
  const rows = [];
  for (const replicas of REPLICAS) {
    const row = await runKills(replicas, Number(minutes) * 60_000, (text) =>
      process.stdout.write(`${text}\n`),
    );
    process.stdout.write(`${JSON.stringify(row)}\n`);
    rows.push(row);
  }
  process.stdout.write(`\n${table(rows)}\n`);
  const broken = rows.filter((row) => row.wrong + row.lost + row.undone + row.twice > 0);
  if (broken.length > 0) process.exitCode = 1;
}
