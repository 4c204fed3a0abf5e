import { mkdtemp, rm, chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import '../test/support/typescript-hooks.js';
import { table } from './measure.js';

const { FailoverWorld } = await import('../test/support/failover/failover-world.ts');
const { runRound } = await import('../test/support/failover/round.ts');
const { shiftedClock } = await import('../test/support/failover/clock-shift.ts');
const {
  CRASH,
  PROMOTION,
  READ_ONLY,
  RESTART,
  SILENT_REPLICA,
  SWITCHOVER,
  TWO_PROMOTIONS,
  WITH_A_REPLICA,
  WITHOUT_LAG,
} = await import('../test/support/failover/scenarios.ts');

const after = (lag) => ({ ...PROMOTION, lag });
const clock = (seconds) => ({
  ...after(1000),
  name: `promotion, clock ${seconds} s`,
  clock: seconds,
});

/**
 * The setups. Each has its own PostgreSQL cluster, its own two replicas of the service, and a list
 * of rounds. In a round with `lag`, a standby that lacks the commits of at least so many
 * milliseconds becomes the primary. `promotions` is the number of such promotions in the round, 1
 * by default.
 */
const SETUPS = [
  {
    name: 'proxy',
    options: { people: 4 },
    rounds: [1000, 1500, 2000, 2500, 3000, 1000].map(after),
  },
  {
    name: 'calm',
    options: { people: 4 },
    rounds: [WITHOUT_LAG, SWITCHOVER, RESTART, CRASH, READ_ONLY],
  },
  {
    name: 'hosts',
    options: { people: 4, isMultiHost: true },
    rounds: [...[1000, 1500, 2000, 2500, 3000].map(after), SWITCHOVER, RESTART],
  },
  {
    name: 'double',
    options: { people: 4, standbys: 2 },
    rounds: [1000, 2000].map((lag) => ({ ...TWO_PROMOTIONS, lag, promotions: 2 })),
  },
  {
    name: 'replica',
    options: { people: 4 },
    rounds: [WITH_A_REPLICA, SILENT_REPLICA].map((scenario) => ({ ...scenario, lag: 2000 })),
  },
  { name: 'clock', options: { people: 4 }, rounds: [-5, 5, -5].map(clock) },
  {
    name: 'synchronous',
    options: {
      people: 4,
      isSynchronous: true,
      environment: { SVC_DATABASE_FAILOVER: 'synchronous' },
    },
    rounds: [
      { ...WITHOUT_LAG, name: 'promotion, synchronous, under load', isQuiet: false },
      SWITCHOVER,
    ],
  },
];

/**
 * Kills the primary of a replicated PostgreSQL 20 times while the standby lacks the commits of the
 * last seconds. Checks every answer that the service gave in those seconds: serials, certificates
 * at `sshd`, and users who were removed. Planned switchovers and restarts must end no session.
 *
 * @param only the name of one setup, to run it alone
 */
export async function run(only) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  await chmod(folder, 0o755);
  const rows = [];
  try {
    for (const setup of SETUPS)
      if (only === undefined || setup.name === only) rows.push(...(await runSetup(setup, folder)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const sum = (column) => rows.reduce((total, row) => total + row[column], 0);
  const violations = sum('violations');
  process.stdout.write(
    `\n${table(rows)}\n\n` +
      `${sum('promotions')} promotions with lag; ${sum('answered')} certificates in the lags, ${sum('lost')} lost; ` +
      `${sum('equal serials')} equal serials; ${sum('undone')} acts undone, ${sum('ended again')} in effect again; ` +
      `${violations} violations\n`,
  );
  if (violations > 0) process.exitCode = 1;
}

async function runSetup({ name, options, rounds }, folder) {
  const rows = [];
  let world;
  try {
    world = await FailoverWorld.start(options);
    for (const scenario of rounds) {
      if (scenario.clock !== undefined)
        await world.cluster.rejoin(shiftedClock(folder, scenario.clock).variables);
      const report = await runRound(world, scenario);
      rows.push(rowOf(name, scenario, report));
      await world.cluster.rejoin();
    }
  } catch (error) {
    process.stdout.write(
      `${name}: ${error.stack}\n${world?.service.log().slice(-10).join('\n')}\n`,
    );
    rows.push(rowOf(name, { promotions: 0 }, { ...NOTHING, violations: [error.message] }));
  } finally {
    await world?.close();
  }
  return rows;
}

const NOTHING = {
  scenario: 'failed',
  answered: 0,
  lost: 0,
  equalSerials: 0,
  undone: 0,
  endedAgain: 0,
  pause: 0,
  refusals: '',
};

function rowOf(setup, scenario, report) {
  const { violations } = report;
  process.stdout.write(
    `${setup}: ${report.scenario}: ${violations.join('; ') || 'as promised'} (${report.refusals})\n`,
  );
  return {
    setup,
    round: report.scenario,
    'lag s': ((scenario.lag ?? 0) / 1000).toFixed(1),
    promotions: scenario.promotions ?? (scenario.isLossy ? 1 : 0),
    answered: report.answered,
    lost: report.lost,
    'equal serials': report.equalSerials,
    undone: report.undone,
    'ended again': report.endedAgain,
    'pause ms': report.pause,
    violations: violations.length,
  };
}
