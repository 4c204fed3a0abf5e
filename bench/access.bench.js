import { fork } from 'node:child_process';
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { fillOtherReach, PEOPLE, personId, TARGETS } from './access-data.js';
import { table } from './measure.js';
import { measureNeighbours, measurePage } from './pages.bench.js';
import { startBenchServer } from './server.js';

/** The most memory by which the server may grow while it writes the table of who can reach what. */
const MOST_GROWTH_MIB = 150;

/** The pages and lists, the n-th time about another person or target. */
const PAGES = [
  ['targets', () => '/admin/access'],
  ['targets, a kind', () => '/admin/access?kind=host_group'],
  ['targets, by name', (n) => `/admin/access?q=role%20${n}`],
  ['a target', (_, { application }) => `/admin/access/application/${application}`],
  ['a group of hosts', (_, { hostGroup }) => `/admin/access/host_group/${hostGroup}`],
  [
    // It counts 100,000 people who lose, and the first of them.
    'what if no person were assigned',
    (_, { application }) => `/admin/access/application/${application}/change?access=assigned`,
    { milliseconds: 200 },
  ],
  ['the reach of a member', (n) => `/admin/members/${personId(n * 37)}`],
  // 720 targets of one person, all on one page.
  ['my reach', () => '/account/reach', { bytes: 256 * 1024 }],
  ['the start page', () => '/'],
  ['GET /v1/setup', () => '/v1/setup'],
  ['GET /api/v1/org/access', () => '/api/v1/org/access'],
  [
    'GET the people of a target',
    (_, { application }) => `/api/v1/org/access/application/${application}/people`,
  ],
  [
    'GET check',
    (n, { application }) =>
      `/api/v1/org/access/check?user=${personId(n * 41)}&kind=application&id=${application}`,
  ],
];

/**
 * Measures the pages and lists of who may reach what, on an organization of 100,000 people, a group
 * of all of them and 1,000 targets; the memory of the server while it writes the whole table; and
 * another organization beside it. It exits 1 if a bound is missed. What the issuance costs there is
 * `npm run bench -- compare BASE_DIR ssh aws oauth --reach`.
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
    const ids = await idsOf(server.database);
    const rows = [];
    for (const [what, pathOf, most] of PAGES.filter(([name]) => name.includes(only))) {
      rows.push(await measurePage(server, token, [what, (n) => pathOf(n, ids), most]));
    }
    write(`${table(rows.map(({ row }) => row))}\n\n`);
    missed.push(...rows.flatMap(({ misses }) => misses));
    if (only === '') {
      missed.push(...(await measureExport(server, token)));
      missed.push(...(await measureNeighbours(server, worst, token, loadsOf(ids))));
    }
  } finally {
    worst.disconnect();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
  for (const miss of missed) write(`MISSED ${miss}\n`);
  if (missed.length > 0) process.exitCode = 1;
}

/** What the large organization asks for, over and over, while the other one is measured. */
function loadsOf({ application }) {
  return [
    { what: 'targets', paths: ['/admin/access', '/admin/access?q=role', '/api/v1/org/access'] },
    {
      what: 'people of a target',
      paths: [
        `/admin/access/application/${application}`,
        `/api/v1/org/access/application/${application}/people`,
      ],
    },
    // 72,000,000 lines: no client of this load reads one to its end.
    { what: 'tables of who can reach what', paths: ['/api/v1/org/access/export'], leaves: true },
  ];
}

/**
 * Reads the table of who can reach what for ten seconds, or to its end, and compares the highest
 * memory of the server with that before.
 */
async function measureExport(server, token) {
  const before = await residentMiB(server.pid);
  const started = performance.now();
  const response = await fetch(`${server.baseUrl}/api/v1/org/access/export`, {
    headers: { cookie: `svc_session=${token}`, 'x-forwarded-for': '10.98.0.1' },
  });
  let bytes = 0;
  let highest = before;
  let last = started;
  let isWhole = true;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (performance.now() - last > 200) {
      last = performance.now();
      highest = Math.max(highest, await residentMiB(server.pid));
    }
    if (performance.now() - started > 10_000) {
      isWhole = false;
      break;
    }
  }
  const seconds = (performance.now() - started) / 1000;
  write(
    `export: status ${response.status}, ${counted(bytes)} bytes in ${seconds.toFixed(1)} s${isWhole ? '' : ', then left'}; ` +
      `memory ${before.toFixed(0)} → ${highest.toFixed(0)} MiB\n\n`,
  );
  return highest - before > MOST_GROWTH_MIB
    ? [`export: memory grew by ${(highest - before).toFixed(0)} MiB`]
    : [];
}

async function residentMiB(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)[1]) / 1024;
}

/** Finds an application and a group of hosts that admit the group of all people. */
async function idsOf(database) {
  const client = new Client(database);
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT (SELECT client_id FROM access_targets WHERE client_id = 'access-0') AS application,
              (SELECT id FROM access_targets WHERE name = 'hosts-0') AS "hostGroup"`,
    );
    return rows[0];
  } finally {
    await client.end();
  }
}

function counted(n) {
  return n.toLocaleString('en-US');
}

function write(text) {
  process.stdout.write(text);
}
