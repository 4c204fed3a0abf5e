import { readFileSync } from 'node:fs';
import { cpuColumns, startCpuTime } from './cpu-time.js';
import { onDebianPostgres } from './debian-server.js';
import { measureTurn, percentile, table } from './measure.js';
import { clientsOf } from './ssh.bench.js';

const SECONDS = 15;
/**
 * The certificates that each process issues before the measurement, so that V8 has compiled the
 * code.
 */
const WARM_UP = 2000;
const WORKERS = 2;
/**
 * The largest accepted CPU time of a certificate with workers, as a multiple of that with one
 * process.
 */
const MOST = 1.1;

/**
 * Measures SSH certificates with one process and with two workers, on Debian's PostgreSQL. It
 * prints the CPU time of a certificate in the service and in PostgreSQL. It also prints the
 * certificates a second, and the idle share of each core. Ends with status 1 if the ratio of the
 * CPU times is over its limit.
 *
 * @param rounds the number of times that each of the two is started and measured
 * @param people the number of enrolled people, each with a client. Fewer than 256 do not keep two
 *   workers busy, and the statements that many requests share become short
 */
export async function run(rounds = '2', people = '256') {
  const turns = { 1: [], [WORKERS]: [] };
  for (let round = 0; round < Number(rounds); round += 1) {
    for (const workers of [1, WORKERS])
      turns[workers].push(await measured(workers, Number(people)));
  }
  const rows = Object.entries(turns).map(([workers, all]) => rowOf(workers, all));
  const [one, several] = Object.values(turns).map((all) => costOf(all));
  const ratio = several / one;
  process.stdout.write(
    `${table(rows)}\n\n` +
      `${people} clients, ${rounds} turns of ${SECONDS} s each, alternately; the clients run on the same cores\n` +
      `CPU time of a certificate, ${WORKERS} workers to one process: ${ratio.toFixed(2)} (at most ${MOST})\n`,
  );
  if (ratio > MOST) process.exitCode = 1;
}

async function measured(workers, people) {
  let turn;
  await onDebianPostgres(
    async ({ server, postgres }) => {
      const work = { open: () => clientsOf(server), sleeps: true };
      for (let issued = 0; issued < WARM_UP * workers;) {
        issued += (await measureTurn(server.pid, work, { seconds: 3 })).acts;
      }
      const ofPostgres = startCpuTime(postgres.pid);
      const idle = startIdleTime();
      turn = await measureTurn(server.pid, work, { seconds: SECONDS });
      turn.idle = idle();
      const { server: own, postgres: children } = ofPostgres();
      // `measureTurn` counts all children of the server as PostgreSQL. Here the children are the
      // workers, because this PostgreSQL is no child of the server.
      turn.service = turn.server + turn.postgres;
      turn.database = own + children;
    },
    async () => ({ SVC_WORKERS: String(workers) }),
    people,
  );
  return turn;
}

function rowOf(workers, turns) {
  const latencies = turns.flatMap((turn) => turn.latencies);
  const sum = (of) => turns.reduce((total, turn) => total + of(turn), 0);
  const idle = turns[0].idle.map((_, core) => sum((turn) => turn.idle[core]) / turns.length);
  return {
    workers,
    ...cpuColumns(
      { server: sum(({ service }) => service), postgres: sum(({ database }) => database) },
      latencies.length,
    ),
    'per second': (latencies.length / (turns.length * SECONDS)).toFixed(0),
    'p50 ms': percentile(latencies, 0.5).toFixed(1),
    'p99 ms': percentile(latencies, 0.99).toFixed(1),
    'idle cores %': idle.map((share) => (100 * share).toFixed(1)).join(' '),
  };
}

function costOf(turns) {
  const seconds = turns.reduce((total, { service, database }) => total + service + database, 0);
  return seconds / turns.reduce((total, { latencies }) => total + latencies.length, 0);
}

/** Starts a measurement of the cores. The returned function returns the idle share of each. */
function startIdleTime() {
  const before = coreTimes();
  return () =>
    coreTimes().map(({ idle, all }, core) => (idle - before[core].idle) / (all - before[core].all));
}

/** Reads the time of each core in ticks (proc(5)). A wait for the disk counts as idle. */
function coreTimes() {
  return readFileSync('/proc/stat', 'utf8')
    .split('\n')
    .filter((line) => /^cpu\d/.test(line))
    .map((line) => {
      const ticks = line.split(/\s+/).slice(1, 9).map(Number);
      return { idle: ticks[3] + ticks[4], all: ticks.reduce((sum, tick) => sum + tick, 0) };
    });
}
