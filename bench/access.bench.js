import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  APPLICATION,
  fillOtherReach,
  PEOPLE,
  personId,
  TARGETS,
  withClient,
} from './access-data.js';
import { table } from './measure.js';
import { memoryOf, watchMemory } from './memory.js';
import { measureNeighbours, measurePage } from './pages.bench.js';
import { startBenchServer } from './server.js';

/**
 * The most MiB by which the memory of the server may grow while it writes the table of who can
 * reach what (`/api/v1/org/access/export`).
 */
const MOST_GROWTH_MIB = 150;

/**
 * The measured pages and lists: a name, a function that returns the path for the n-th request, and
 * bounds that replace the usual ones. The path of a page about one person names another person in
 * each request.
 */
const PAGES = [
  ['targets', () => '/admin/access'],
  ['targets, a kind', () => '/admin/access?kind=host_group'],
  ['targets, by name', (n) => `/admin/access?q=role%20${n}`],
  ['a target', () => `/admin/access/application/${APPLICATION}`],
  ['a group of hosts', (_, hostGroup) => `/admin/access/host_group/${hostGroup}`],
  [
    // The page with this forecast takes longer, because it counts the 100,000 people who would lose
    // access.
    'what if no person were assigned',
    () => `/admin/access/application/${APPLICATION}/change?access=assigned`,
    { milliseconds: 200 },
  ],
  ['the reach of a member', (n) => `/admin/members/${personId(n * 37)}`],
  // This page is larger than others, because it lists all 720 targets that the person reaches.
  ['my reach', () => '/account/reach', { bytes: 256 * 1024 }],
  ['the start page', () => '/'],
  ['GET /v1/setup', () => '/v1/setup'],
  ['GET /api/v1/org/access', () => '/api/v1/org/access'],
  ['GET the people of a target', () => `/api/v1/org/access/application/${APPLICATION}/people`],
  [
    'GET check',
    (n) => `/api/v1/org/access/check?user=${personId(n * 41)}&kind=application&id=${APPLICATION}`,
  ],
];

/**
 * Measures an organization of 100,000 people, a group of all of them and 1,000 targets. First it
 * measures the pages and lists of who may reach what, and second the memory of the server while it
 * writes the whole table. Third it measures how much this work delays another organization. The
 * exit status is 1 if a bound is missed. The cost of issuing credentials on such data is measured
 * by `npm run bench -- compare BASE_DIR ssh aws oauth --reach`.
 *
 * @param only a part of the names of the pages to be measured
 */
export async function run(only = '') {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  const worst = fork(fileURLToPath(new URL('neighbours-load-process.js', import.meta.url)));
  const missed = [];
  try {
    const token = await fillOtherReach(server.database);
    const targets = Object.values(TARGETS).reduce((sum, n) => sum + n, 0);
    write(`${counted(PEOPLE)} people in one group, ${counted(targets)} targets\n\n`);
    const hostGroup = await hostGroupOf(server.database);
    const rows = [];
    for (const [what, pathOf, most] of PAGES.filter(([name]) => name.includes(only))) {
      rows.push(await measurePage(server, token, [what, (n) => pathOf(n, hostGroup), most]));
    }
    write(`${table(rows.map(({ row }) => row))}\n\n`);
    missed.push(...rows.flatMap(({ misses }) => misses));
    if (only === '') {
      missed.push(...(await measureExport(server, token)));
      missed.push(...(await measureNeighbours(server, worst, token, LOADS)));
    }
  } finally {
    worst.disconnect();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
  for (const miss of missed) write(`MISSED ${miss}\n`);
  if (missed.length > 0) process.exitCode = 1;
}

/**
 * The requests that the large organization repeats while the delay of the other organization is
 * measured.
 */
const LOADS = [
  { what: 'targets', paths: ['/admin/access', '/admin/access?q=role', '/api/v1/org/access'] },
  {
    what: 'people of a target',
    paths: [
      `/admin/access/application/${APPLICATION}`,
      `/api/v1/org/access/application/${APPLICATION}/people`,
    ],
  },
  // The table has 72,000,000 lines, which no client reads to the end in the measured time. So the
  // end of the load cuts its downloads off (`leaves`).
  { what: 'tables of who can reach what', paths: ['/api/v1/org/access/export'], leaves: true },
];

/** The longest time for which the table of who can reach what is read, in milliseconds. */
const LONGEST_READING = 10_000;

/**
 * Reads the table of who can reach what for ten seconds, or to its end. Compares the highest memory
 * of the server during that time with its memory before. Returns a list with the missed bound, or
 * an empty list.
 */
async function measureExport(server, token) {
  const before = memoryOf(server.pid);
  const started = performance.now();
  const response = await fetch(`${server.baseUrl}/api/v1/org/access/export`, {
    headers: { cookie: `svc_session=${token}`, 'x-forwarded-for': '10.98.0.1' },
  });
  const { acts: bytes, highest } = await watchMemory(server.pid, async () => {
    let read = 0;
    for await (const chunk of response.body) {
      read += chunk.length;
      if (performance.now() - started > LONGEST_READING) break;
    }
    return read;
  });
  write(
    `export: status ${response.status}, ${counted(bytes)} bytes in ${((performance.now() - started) / 1000).toFixed(1)} s; ` +
      `memory ${before.toFixed(0)} → ${highest.toFixed(0)} MiB\n\n`,
  );
  return highest - before > MOST_GROWTH_MIB
    ? [`export: memory grew by ${(highest - before).toFixed(0)} MiB`]
    : [];
}

/** Finds the id of `hosts-0`, a group of hosts that admits the group with all people. */
function hostGroupOf(database) {
  return withClient(database, async (client) => {
    const { rows } = await client.query(`SELECT id FROM access_targets WHERE name = 'hosts-0'`);
    return rows[0].id;
  });
}

function counted(n) {
  return n.toLocaleString('en-US');
}

function write(text) {
  process.stdout.write(text);
}
