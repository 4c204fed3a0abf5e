import { setTimeout as delay } from 'node:timers/promises';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fillOwnReach, ROLE } from './access-data.js';
import { AWS_SCENARIOS } from './credentials.bench.js';
import { startCpuTime, sumOfCpu } from './cpu-time.js';
import { createServiceDatabase } from './debian-server.js';
import { EDGE_SCENARIOS } from './edge.bench.js';
import { measureTurn, percentile, table } from './measure.js';
import { OAUTH_SCENARIOS, prepareOAuth } from './oauth.bench.js';
import { fillEvents } from './pages-data.js';
import { geometricMean, ratioOf } from './ratio.js';
import { SCIM_SCENARIOS } from './scim.bench.js';
import { ScimData } from './scim-data.js';
import { startBenchServer } from './server.js';
import { makeCaKey, SSH_SCENARIOS } from './ssh.bench.js';

const { startDebianPostgres } = await import('../test/support/debian-postgres.ts');

/**
 * The ratio of CPU times above which a scenario counts as slower. It is reported as slower only if
 * its whole confidence interval is above this value.
 */
const SLOWER = 1.03;
const WARM_UP_SECONDS = 0.3;

/**
 * The groups of scenarios that can be compared, by the names that the argument WORK can have.
 * `prepare` runs once on each server, and the scenarios open their clients with its result.
 */
const WORKS = {
  ssh: { scenarios: SSH_SCENARIOS, prepare: (server) => server },
  aws: { scenarios: AWS_SCENARIOS, prepare: (server) => server },
  oauth: { scenarios: OAUTH_SCENARIOS, prepare: prepareOAuth },
  scim: { scenarios: SCIM_SCENARIOS, prepare: prepareScim },
  edge: { scenarios: EDGE_SCENARIOS, prepare: (server) => server },
};

/**
 * Compares this tree (after) with another built checkout (before). Both servers run at the same
 * time, each with a PostgreSQL of its own, and are measured alternately. The order is before,
 * after, after, before in one pair, and the reverse in the next pair. So slow changes of the
 * machine's speed cancel out. Both servers start several times, since no two processes are equally
 * fast.
 *
 * @param args `BASE_DIR [WORK…] [--only=ROW…] [--reach] [--external] [--events=0] [--pairs=12]
 *   [--seconds=2] [--starts=2] [--after=D]`; `--only` names a row of the table, and may be given
 *   again. `--external` gives each server a PostgreSQL of Debian with its default settings, in
 *   place of the embedded one. The servers then share their rate limits by it, as replicas do.
 *   `--seconds` is the time for each tree in a pair. `--reach` gives both servers 100,000 people in
 *   one group, and 1,000 targets that admit the group if the tree has targets. `--events` fills
 *   both audit logs with that number of events, spread over three months. `--after` names another
 *   tree to compare in place of this one. If it is `BASE_DIR` itself, the result shows how exact
 *   the measurement is
 */
export async function run(...args) {
  const options = optionsOf(args);
  const { pairs, starts } = options;
  const results = new Map();
  for (let start = 0; start < starts; start += 1) {
    const from = Math.round((pairs * start) / starts);
    const to = Math.round((pairs * (start + 1)) / starts);
    await withServers(options, (servers) =>
      measurePairs(servers, { ...options, from, to }, (what, turns) => {
        results.set(what, [...(results.get(what) ?? []), turns]);
      }),
    );
  }
  report(results, options);
}

/**
 * Starts the servers of both trees, calls a function with them, and then removes the servers and
 * their data.
 */
async function withServers({ baseDir, afterDir, external }, act) {
  const folders = [];
  const servers = [];
  const databases = [];
  try {
    for (const tree of [baseDir, afterDir]) {
      const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
      folders.push(folder);
      const environment = {
        SVC_SSH_CA_KEY_PATH: await makeCaKey(folder),
        SVC_METRICS_BEARER_TOKEN: 'the token of a scraper',
      };
      const postgres = external ? await startDebianPostgres() : undefined;
      if (postgres) {
        databases.push(postgres);
        environment.SVC_DATABASE_URL = await createServiceDatabase(postgres);
      }
      const server = await startBenchServer(folder, environment, tree);
      servers.push(postgres ? { ...server, ...reachedBy(postgres) } : server);
    }
    await act(servers);
  } finally {
    for (const server of servers) await server.stop();
    for (const postgres of databases) await postgres.stop();
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  }
}

/** Returns how the bench reaches the external PostgreSQL of a server, and its process id. */
function reachedBy(postgres) {
  return {
    postgresPid: postgres.pid,
    database: { connectionString: postgres.url('postgres', 'svc') },
  };
}

async function measurePairs(servers, options, add) {
  const { works, only, reach, events, pairs, seconds, from, to } = options;
  const scenarios = await prepareAll(works, only, servers);
  if (reach) {
    for (const server of servers) {
      process.stderr.write('loading the people and targets\n');
      if (await fillOwnReach(server.database)) server.roleArn = ROLE;
    }
  }
  if (events > 0) {
    for (const { database } of servers) {
      process.stderr.write('loading the audit events\n');
      await fillEvents(database, events);
    }
  }
  for (const scenario of scenarios) {
    await measurePair(servers, scenario, { seconds: Math.min(seconds, 2), isReversed: false });
  }
  process.stderr.write('warmed up\n');
  for (let pair = from; pair < to; pair += 1) {
    for (const [n, scenario] of scenarios.entries()) {
      const isReversed = (pair + n) % 2 !== 0;
      add(scenario.what, await measurePair(servers, scenario, { seconds, isReversed }));
    }
    process.stderr.write(`pair ${pair + 1} of ${pairs}\n`);
  }
}

function optionsOf(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      only: { type: 'string', multiple: true, default: [] },
      reach: { type: 'boolean', default: false },
      external: { type: 'boolean', default: false },
      events: { type: 'string', default: '0' },
      pairs: { type: 'string', default: '12' },
      seconds: { type: 'string', default: '2' },
      starts: { type: 'string', default: '2' },
      after: { type: 'string', default: dirname(import.meta.dirname) },
    },
  });
  const [baseDir, ...works] = positionals;
  const numbers = ['pairs', 'seconds', 'starts', 'events'];
  const [pairs, seconds, starts, events] = numbers.map((name) => Number(values[name]));
  const { only } = values;
  const isKnown =
    works.every((work) => work in WORKS) && only.every((row) => workOf(row) !== undefined);
  const areInBounds = pairs >= 2 && seconds > 0 && starts >= 1 && events >= 0;
  if (baseDir === undefined || !isKnown || !areInBounds) {
    process.stderr.write(
      `usage: npm run bench -- compare BASE_DIR [${Object.keys(WORKS).join('|')}…] [--only=ROW…] [--reach] [--external] [--events=0] [--pairs=12] [--seconds=2] [--starts=2] [--after=DIR]\nrows: ${rowNames().join('; ')}\n`,
    );
    process.exit(2);
  }
  return {
    baseDir: resolve(baseDir),
    afterDir: resolve(values.after),
    works: worksOf(works, only),
    only,
    reach: values.reach,
    external: values.external,
    events,
    pairs,
    seconds,
    starts,
  };
}

/**
 * Chooses the groups of scenarios: the given ones, or else those of the rows in `--only`, or else
 * all.
 */
function worksOf(works, only) {
  if (works.length > 0) return works;
  return only.length > 0 ? [...new Set(only.map(workOf))] : Object.keys(WORKS);
}

/**
 * Returns the group of scenarios that a row of the table belongs to; undefined for an unknown row.
 */
function workOf(row) {
  return Object.keys(WORKS).find((work) => WORKS[work].scenarios.some(({ what }) => what === row));
}

function rowNames() {
  return Object.values(WORKS).flatMap(({ scenarios }) => scenarios.map(({ what }) => what));
}

/**
 * Prepares both servers for every group of scenarios, and lists the scenarios of these groups. If
 * `only` is not empty, it lists only the scenarios that `only` names.
 */
async function prepareAll(works, only, servers) {
  const scenarios = [];
  for (const work of works) {
    const { scenarios: ofWork, prepare } = WORKS[work];
    const targets = [];
    for (const server of servers) targets.push(await prepare(server));
    scenarios.push(...ofWork.map((scenario) => ({ ...scenario, targets })));
  }
  return only.length === 0 ? scenarios : scenarios.filter(({ what }) => only.includes(what));
}

async function prepareScim({ baseUrl, database }) {
  process.stderr.write('loading the SCIM users\n');
  return { url: `${baseUrl}/scim/v2`, token: await new ScimData(database).fill() };
}

/**
 * Measures one scenario twice on each server: first, second, second, first.
 *
 * @returns the sums of the measurements of each server: `[before, after]`
 */
async function measurePair(servers, { open, sleeps, targets }, { seconds, isReversed }) {
  const turns = [[], []];
  const [first, second] = isReversed ? [1, 0] : [0, 1];
  for (const n of [first, second, second, first]) {
    await untilQuiet(servers);
    const work = { open: () => open(targets[n]), sleeps };
    const { pid, postgresPid } = servers[n];
    const limits = {
      seconds: seconds / 2,
      warmUpSeconds: WARM_UP_SECONDS,
      postgres: postgresPid,
    };
    turns[n].push(await measureTurn(pid, work, limits));
  }
  return turns.map((ofOne) => ({
    ...sumOfCpu(ofOne),
    latencies: ofOne.flatMap(({ latencies }) => latencies),
  }));
}

/**
 * Waits until both servers together use less than 5 ms of CPU time in 100 ms, for 3 seconds at
 * most. The wait is needed, because PostgreSQL still writes after its last answer.
 */
async function untilQuiet(servers) {
  for (let attempt = 0; attempt < 30; attempt += 1) {
    const cpuTimes = servers.map(({ pid, postgresPid }) => startCpuTime(pid, postgresPid));
    await delay(100);
    const used = cpuTimes.reduce((sum, cpuTime) => {
      const { server, postgres } = cpuTime();
      return sum + server + postgres;
    }, 0);
    if (used < 0.005) return;
  }
}

function report(results, { pairs, seconds, starts, baseDir, afterDir }) {
  const rows = [...results].map(([what, turns]) => rowOf(what, turns));
  process.stdout.write(
    `${table(rows)}\n\n` +
      `${pairs} alternating pairs, ${seconds} s for either tree in each, servers started ${starts} times; before: ${baseDir}, after: ${afterDir}; fsync, limits, audit and the request log on\n` +
      `µs: CPU time of one operation, of the server (S) and of all PostgreSQL processes (P) together; ratios are after/before,\n` +
      `geometric means over the pairs; slower: the 95 % interval of the CPU ratio lies wholly above ${SLOWER}\n`,
  );
  const slower = rows.filter((row) => row.slower === 'YES').map(({ what }) => what);
  process.stdout.write(slower.length === 0 ? 'nothing slower\n' : `SLOWER: ${slower.join('; ')}\n`);
  if (slower.length > 0) process.exitCode = 1;
}

function rowOf(what, pairs) {
  const ratioBy = (figure) => ratioOf(pairs.map((pair) => pair.map(figure)));
  const { ratio, low, high } = ratioBy((turn) => perOperation(turn, turn.server + turn.postgres));
  const latency = (share) => ratioBy(({ latencies }) => percentile(latencies, share)).ratio;
  return {
    what,
    'before µs (S + P)': microseconds(pairs.map(([before]) => before)),
    'after µs (S + P)': microseconds(pairs.map(([, after]) => after)),
    'CPU ratio': ratio.toFixed(3),
    '95 % interval': `${low.toFixed(3)}–${high.toFixed(3)}`,
    'p50 ms': times(pairs, 0.5),
    'p50 ratio': latency(0.5).toFixed(2),
    'p99 ms': times(pairs, 0.99),
    'p99 ratio': latency(0.99).toFixed(2),
    slower: low > SLOWER ? 'YES' : 'no',
  };
}

function perOperation({ latencies }, seconds) {
  return (seconds * 1e6) / latencies.length;
}

/**
 * Returns the geometric mean of the CPU microseconds of one operation as text: the sum, and the
 * parts of the server and of PostgreSQL.
 */
function microseconds(turns) {
  const mean = (secondsOf) =>
    geometricMean(turns.map((turn) => perOperation(turn, secondsOf(turn)))).toFixed(0);
  const together = mean(({ server, postgres }) => server + postgres);
  return `${together} (${mean(({ server }) => server)} + ${mean(({ postgres }) => postgres)})`;
}

/**
 * Returns a percentile of the latencies of both servers as text: `before → after`. Each number is
 * the median of the percentiles of all pairs.
 */
function times(pairs, share) {
  return [0, 1]
    .map((n) =>
      percentile(
        pairs.map((pair) => percentile(pair[n].latencies, share)),
        0.5,
      ).toFixed(1),
    )
    .join(' → ');
}
