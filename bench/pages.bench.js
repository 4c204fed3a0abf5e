import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCpuTime } from './cpu-time.js';
import { HttpClient } from './http-client.js';
import { percentile, table } from './measure.js';
import { neighbour, NEIGHBOURS } from './neighbours.bench.js';
import { DOMAIN, eventId, EVENTS, fillPages, memberId, MEMBERS } from './pages-data.js';
import { startBenchServer } from './server.js';

/**
 * The bounds. `milliseconds` is the CPU time of the server and of PostgreSQL for a page, and
 * `bytes` the size of a page with its files. `ratio` is the factor by which the p99 of another
 * tenant may grow.
 */
const MOST = { milliseconds: 50, bytes: 100 * 1024, ratio: 3 };

/** The number of times that a page is opened before it is measured, and while it is measured. */
const WARM_UP = 3;
const TIMES = 15;

/** The number of concurrent requests of the large organization. */
const LOAD = 40;
const SECONDS = 2;
const ROUNDS = 4;

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const MODEL = 'YubiKey 5 FIPS Series';

/**
 * The measured pages: a name, and a function that returns the path for the n-th request. The path
 * of a page about one member, or about one event, names another member or event in each request.
 */
const PAGES = [
  ['overview', () => '/admin'],
  ['members', () => '/admin/members'],
  ['members, by name', (n) => `/admin/members?q=given${n * 37}`],
  ['members, by last name', (n) => `/admin/members?q=family${n * 37}`],
  ['members, by address', (n) => `/admin/members?q=user-${n * 37}@`],
  ['members, an unknown name', () => '/admin/members?q=nobody'],
  ['members, by model', () => `/admin/members?model=${encodeURIComponent(MODEL)}`],
  ['members, an unknown model', () => '/admin/members?model=unknown'],
  ['members, FIPS', () => '/admin/members?fips=true'],
  ['members, not FIPS', () => '/admin/members?fips=false'],
  ['members without a key', () => '/admin/members?keys=none'],
  ['members with one key', () => '/admin/members?keys=one'],
  ['members with several keys', () => '/admin/members?keys=several'],
  ['members, no key ever used', () => '/admin/members?last_use=never'],
  ['members, no key used for a year', () => '/admin/members?last_use=365'],
  ['members, admins', () => '/admin/members?role=admin'],
  ['members, deactivated', () => '/admin/members?status=inactive'],
  ['members, sorted by address', () => '/admin/members?sort=address'],
  ['members, sorted by last use', () => '/admin/members?sort=last_use'],
  [
    'members, everything at once',
    () =>
      '/admin/members?q=user-1&fips=false&keys=one&last_use=100&role=member&status=active&sort=last_use',
  ],
  ['a member', (n) => `/admin/members/${memberId(n * 37 + 1)}`],
  ['audit log', () => '/admin/audit'],
  [
    'audit, who logged in last Tuesday',
    () => `/admin/audit?type=access&from=${day(5)}&to=${day(5)}`,
  ],
  ['audit, a kind', () => '/admin/audit?type=credentials'],
  ['audit, changes by admins', () => '/admin/audit?type=changes'],
  ['audit, a type without events', () => '/admin/audit?type=admin_demote'],
  ['audit, a person', (n) => `/admin/audit?person=user-${n * 37}@${DOMAIN}`],
  ['audit, a name', (n) => `/admin/audit?person=given${n * 37 + 10_000}%20`],
  ['audit, an unknown address', () => `/admin/audit?person=nobody@${DOMAIN}`],
  ['audit, an application', (n) => `/admin/audit?client=client-${n}`],
  ['audit, the name of an application', (n) => `/admin/audit?client=application%20${n}`],
  [
    'audit, a key',
    (n) => `/admin/audit?key=01900000-0000-7000-a003-${(n * 74).toString(16).padStart(12, '0')}`,
  ],
  ['audit, a model', () => '/admin/audit?key=73bb0cd4-e502-49b8-9c6f-b59445bf720b'],
  ['audit, an address', (n) => `/admin/audit?ip=10.${n}.3.${n}`],
  ['audit, a small network', (n) => `/admin/audit?ip=10.${n}.3.0/24`],
  ['audit, a large network', () => '/admin/audit?ip=10.0.0.0/9'],
  ['audit, a network without events', () => '/admin/audit?ip=192.0.2.0/24'],
  ['audit, a request', (n) => `/admin/audit?request=request-${n * 1000}`],
  ['audit, a rare combination', () => '/admin/audit?client=client-0&type=members'],
  ['audit, days long ago', () => `/admin/audit?from=${day(80)}&to=${day(79)}&type=logins`],
  [
    'audit, everything at once',
    (n) =>
      `/admin/audit?type=access&person=user-${n}@${DOMAIN}&ip=10.0.0.0/8&from=${day(60)}&to=${day(0)}`,
  ],
  ['an event', (n) => `/admin/audit/${eventId(n * 1000)}`],
  ['saved questions', () => '/admin/audit/questions'],
  ['SCIM tokens', () => '/admin/scim-tokens'],
  ['API tokens', () => '/admin/api-tokens'],
  ['Event receivers', () => '/admin/event-receivers'],
  ['applications', () => '/admin/applications'],
  ['targets', () => '/admin/access'],
  ['targets, by name', (n) => `/admin/access?q=application%20${n}`],
  ['targets, a kind', () => '/admin/access?kind=application'],
  ['settings', () => '/admin/settings'],
  ['domains', () => '/admin/domains'],
  ['identity providers', () => '/admin/providers'],
  ['GitHub', () => '/admin/github'],
];

const AUDIT = '/api/v1/org/audit-events';
/**
 * The requests that the large organization repeats while the delay of the other organization is
 * measured.
 */
const LOADS = [
  { what: 'exports as CSV', paths: [`${AUDIT}?format=csv`] },
  {
    what: 'exports as NDJSON, filtered',
    paths: [`${AUDIT}?format=ndjson&client=client-0&type=members`],
  },
  {
    what: 'searches on the page',
    paths: ['', '?type=access', '?ip=10.0.0.0/9', '?client=client-0&type=members'].map(
      (query) => `/admin/audit${query}`,
    ),
  },
  {
    what: 'lists of members',
    paths: ['/admin/members', '/admin/members?keys=none', '/admin/members?q=given1'],
  },
];

/**
 * Measures every page of the console on 100,000 members and many audit events, and the effect on
 * another organization. The exit status is 1 if a bound is missed.
 *
 * @param only a part of the names of the pages to be measured
 * @param events the number of audit events
 */
export async function run(only = '', events = String(EVENTS)) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  const worst = fork(fileURLToPath(new URL('neighbours-load-process.js', import.meta.url)));
  const missed = [];
  try {
    const began = performance.now();
    const token = await fillPages(server.database, Number(events));
    write(`${counted(MEMBERS)} members, ${counted(Number(events))} audit events: loaded in `);
    write(`${((performance.now() - began) / 1000).toFixed(0)} s\n\n`);
    const pages = PAGES.filter(([what]) => what.includes(only));
    const paints = await paintsOf(server.baseUrl, token, pages);
    const rows = [];
    for (const page of pages)
      rows.push(await measurePage(server, token, page, paints.get(page[0])));
    write(`${table(rows.map(({ row }) => row))}\n\n`);
    write(
      `each page ${TIMES} times by one client; CPU time of the server and of all processes of its PostgreSQL; bytes of the page, ` +
        `and of all that Chromium loads; first contentful paint in Chromium, cold cache\nbounds: ${MOST.milliseconds} ms, ` +
        `${counted(MOST.bytes)} bytes\n\n`,
    );
    missed.push(...rows.flatMap(({ misses }) => misses));
    if (only === '') missed.push(...(await measureNeighbours(server, worst, token, LOADS)));
  } finally {
    worst.disconnect();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
  for (const miss of missed) write(`MISSED ${miss}\n`);
  if (missed.length > 0) process.exitCode = 1;
}

/**
 * Opens one page many times.
 *
 * @param page its name, a function that returns its path for the n-th request, and its own bounds
 * @returns the row of the page in the table, and the bounds that the page misses; an answer with
 *   another status than 200 counts as a missed bound
 */
export async function measurePage(server, token, [what, pathOf, most], painted) {
  const bounds = { ...MOST, ...most };
  const client = new HttpClient(server.baseUrl, { svc_session: token });
  const open = async (n) => {
    const { status, body } = await client.open(pathOf(n));
    return { status, bytes: Buffer.byteLength(body) };
  };
  try {
    const { status } = await open(0);
    if (status !== 200)
      return { row: { page: what, status }, misses: [`${what}: status ${status}`] };
    for (let n = 1; n < WARM_UP; n += 1) await open(n);
    await quiet();
    const times = [];
    let bytes = 0;
    const cpuTime = startCpuTime(server.pid);
    for (let n = 0; n < TIMES; n += 1) {
      const start = performance.now();
      bytes = Math.max(bytes, (await open(n)).bytes);
      times.push(performance.now() - start);
    }
    const cpu = cpuTime();
    const [own, database] = [cpu.server, cpu.postgres].map((seconds) => (seconds * 1000) / TIMES);
    const all = Math.max(bytes, painted?.bytes ?? 0);
    const misses = [];
    if (own + database >= bounds.milliseconds) {
      misses.push(`${what}: ${(own + database).toFixed(1)} ms of CPU time`);
    }
    if (all >= bounds.bytes) misses.push(`${what}: ${counted(all)} bytes`);
    const row = {
      page: what,
      status,
      'server ms': own.toFixed(1),
      'PostgreSQL ms': database.toFixed(1),
      'together ms': (own + database).toFixed(1),
      'of the bound': ((own + database) / bounds.milliseconds).toFixed(2),
      'p50 ms': percentile(times, 0.5).toFixed(1),
      'page bytes': counted(bytes),
      'all bytes': painted ? counted(painted.bytes) : '',
      'first paint ms': painted ? painted.paint.toFixed(0) : 'no Chromium',
    };
    return { row, misses };
  } finally {
    client.close();
  }
}

/**
 * Measures the first contentful paint and the loaded bytes of each page, each in a new browser
 * profile. Returns an empty map if Chromium is not installed.
 */
async function paintsOf(baseUrl, token, pages) {
  const found = new Map();
  const executablePath = CHROMIUM.find((path) => existsSync(path));
  if (executablePath === undefined) return found;
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({
    executablePath,
    chromiumSandbox: process.getuid?.() !== 0,
    args: ['--disable-gpu'],
  });
  try {
    for (const [index, [what, pathOf]] of pages.entries()) {
      const context = await browser.newContext({
        baseURL: baseUrl,
        extraHTTPHeaders: { 'x-forwarded-for': `10.99.0.${index + 1}` },
      });
      await context.addCookies([{ name: 'svc_session', value: token, url: baseUrl }]);
      const page = await context.newPage();
      const sizes = [];
      page.on('requestfinished', (request) => sizes.push(request.sizes().catch(() => undefined)));
      await page.goto(pathOf(0), { waitUntil: 'networkidle' });
      const paint = await page.evaluate(
        `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN`,
      );
      const bytes = (await Promise.all(sizes)).reduce(
        (sum, size) => sum + (size?.responseBodySize ?? 0),
        0,
      );
      found.set(what, { paint, bytes });
      await context.close();
    }
  } finally {
    await browser.close();
  }
  return found;
}

/**
 * Measures how long another organization waits for its pages, without load and during each load of
 * the large organization.
 *
 * @param loads the requests of the large organization, which are repeated: `[{ what, paths, leaves
 *   }]`
 * @returns the bounds that the other organization's times miss
 */
export async function measureNeighbours(server, worst, token, loads) {
  const headers = { cookie: `svc_session=${token}` };
  await neighbour(server, 1);
  const rows = [];
  const misses = [];
  for (const { what, paths, leaves } of loads) {
    const requests = paths.map((path) => ({ method: 'GET', path, headers }));
    const [quietTimes, loaded, answers] = [[], [], {}];
    for (let round = 0; round < ROUNDS; round += 1) {
      quietTimes.push(...(await neighbour(server, SECONDS)));
      worst.send({ start: { baseUrl: server.baseUrl, clients: LOAD, requests, leaves } });
      await neighbour(server, 1);
      loaded.push(...(await neighbour(server, SECONDS)));
      worst.send({ stop: true });
      const [{ statuses }] = await once(worst, 'message');
      for (const [status, n] of Object.entries(statuses))
        answers[status] = (answers[status] ?? 0) + n;
    }
    const [before, during] = [quietTimes, loaded].map((times) => percentile(times, 0.99));
    const ratio = during / before;
    if (ratio > MOST.ratio)
      misses.push(`${what}: p99 of another organization ${ratio.toFixed(2)} times`);
    rows.push({
      'beside what': what,
      'quiet p50 ms': percentile(quietTimes, 0.5).toFixed(1),
      'p99 ms': before.toFixed(1),
      'beside p50 ms': percentile(loaded, 0.5).toFixed(1),
      'p99 ms ': during.toFixed(1),
      'p99 ratio': ratio.toFixed(2),
      'answers to the load': Object.entries(answers)
        .map(([status, n]) => `${n} × ${status}`)
        .join(', '),
    });
  }
  write(
    `${table(rows)}\n\n${LOAD} requests of the large organization at once; ${NEIGHBOURS} clients of another one ask for their `,
  );
  write(
    `keys, ${ROUNDS} rounds of ${SECONDS} s quiet and ${SECONDS} s beside it; bound: p99 within ${MOST.ratio} times of quiet\n`,
  );
  return misses;
}

/** Waits half a second, so that work after the last answer is not counted. */
function quiet() {
  return new Promise((go) => setTimeout(go, 500));
}

/** Returns the UTC date of the day that is a number of days ago, as `YYYY-MM-DD`. */
function day(ago) {
  return new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
}

function counted(n) {
  return n.toLocaleString('en-US');
}

function write(text) {
  process.stdout.write(text);
}
