import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuColumns, startCpuTime, sumOfCpu } from './cpu-time.js';
import { load, percentile, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { groupId, ScimData, USERS, userId } from './scim-data.js';
import { startBenchServer } from './server.js';

/**
 * The number of concurrent requests of the tenant with the heavy load, and the number of clients of
 * the other tenant, whose times are measured.
 */
const WORST = 40;
export const NEIGHBOURS = 8;
const EVENTS = 500_000;
const SECONDS = 2;
const ROUNDS = 3;
const WARM_UP_SECONDS = 1;
const MOST = 3;

const SCIM_JSON = { 'content-type': 'application/scim+json' };
const LARGEST = `/scim/v2/Groups/${groupId(0)}`;

const AUDIT = '/api/v1/org/audit-events';
/**
 * The kinds of heavy load that an admin of the tenant can cause. One tenant repeats the requests of
 * a kind, each written as `[method, path, body]`.
 */
const OF_ADMIN = [
  { what: 'audit search, an unknown address', requests: [['GET', `${AUDIT}?email=a@b.example`]] },
  {
    what: 'audit search, addresses of users',
    requests: many((n) => ['GET', `${AUDIT}?limit=1000&email=user-${n}@scim.bench.example`]),
  },
  { what: 'audit search, a rare type', requests: [['GET', `${AUDIT}?type=admin_demote`]] },
  { what: 'audit pages of 1,000', requests: [['GET', `${AUDIT}?limit=1000`]] },
  {
    what: 'audit export (NDJSON)',
    requests: [['GET', AUDIT]],
    headers: { accept: 'application/x-ndjson' },
  },
  { what: 'list of members', requests: [['GET', '/api/v1/org/members?limit=200']] },
];
/** The kinds of heavy load that the identity provider of the tenant can cause by SCIM. */
const OF_PROVIDER = [
  { what: 'SCIM filter without an index', requests: [['GET', filtered('title co "zzz"')]] },
  {
    what: 'SCIM filter, sorted by title',
    requests: [['GET', `${filtered('userName co "9"')}&sortBy=title`]],
  },
  { what: 'SCIM list of 1,000', requests: [['GET', '/scim/v2/Users?count=1000']] },
  {
    what: 'SCIM look-up by userName',
    requests: many((n) => ['GET', filtered(`userName eq "user-${n}@scim.bench.example"`)]),
  },
  { what: 'SCIM bulk of 100 PATCHes', requests: many((n) => ['POST', '/scim/v2/Bulk', bulkOf(n)]) },
  { what: 'GET of the group of 100,000', requests: [['GET', LARGEST]] },
  {
    what: '1,000 members removed and added',
    requests: many((n) => ['PATCH', LARGEST, members(n % 2 ? 'add' : 'remove')]),
  },
];

/**
 * Measures how much the heavy load of one tenant delays another tenant. The other tenant sends `GET
 * /v1/keys`, without load and during 40 concurrent requests of one kind. Measurements without load
 * and with load alternate, because the speed of the machine changes.
 *
 * @param only a part of the names of the kinds to be measured
 */
export async function run(only = '') {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  const worst = fork(fileURLToPath(new URL('neighbours-load-process.js', import.meta.url)));
  try {
    const data = new ScimData(server.database);
    const began = performance.now();
    const token = await data.fill();
    const session = await data.fillAudit(EVENTS);
    write(`${counted(USERS)} users, ${counted(EVENTS)} audit events: `);
    write(`loaded in ${((performance.now() - began) / 1000).toFixed(0)} s\n\n`);
    const loads = [
      ...OF_ADMIN.map((each) => withHeaders(each, { cookie: `svc_session=${session}` })),
      ...OF_PROVIDER.map((each) =>
        withHeaders(each, { ...SCIM_JSON, authorization: `Bearer ${token}` }),
      ),
    ];
    await neighbour(server, WARM_UP_SECONDS);
    const rows = [];
    for (const each of loads.filter(({ what }) => what.includes(only))) {
      rows.push(await measured(server, worst, each));
    }
    write(`${table(rows)}\n\n`);
    write(
      `${WORST} requests of one tenant at once; ${NEIGHBOURS} clients of another one ask for their keys, in ${ROUNDS} turns of ` +
        `${SECONDS} s beside the load, with quiet ones before and behind each; fsync, limits and audit on; server, PostgreSQL and both loads on ` +
        `this machine; CPU time is that of an answer under the load, the neighbour's answers included\naim: p99 within ${MOST} times of quiet\n`,
    );
  } finally {
    worst.disconnect();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measured(server, worst, { what, requests, headers }) {
  if (process.stderr.isTTY) process.stderr.write(`${what}\n`);
  const all = requests.map(([method, path, body]) => ({ method, path, headers, body }));
  const quiet = await neighbour(server, SECONDS);
  const loaded = [];
  const answers = {};
  const cpu = [];
  let beside = 0; // the number of answers that the measured tenant got while the load warmed up
  for (let round = 0; round < ROUNDS; round += 1) {
    const cpuTime = startCpuTime(server.pid);
    worst.send({ start: { baseUrl: server.baseUrl, clients: WORST, requests: all } });
    beside += (await neighbour(server, WARM_UP_SECONDS)).length;
    loaded.push(...(await neighbour(server, SECONDS)));
    cpu.push(cpuTime());
    worst.send({ stop: true });
    const [{ statuses }] = await once(worst, 'message');
    for (const [status, n] of Object.entries(statuses))
      answers[status] = (answers[status] ?? 0) + n;
    quiet.push(...(await neighbour(server, SECONDS)));
  }
  const toLoad = Object.values(answers).reduce((sum, n) => sum + n, 0);
  const [quietP99, loadedP99] = [quiet, loaded].map((times) => percentile(times, 0.99));
  return {
    what,
    'quiet p50 ms': percentile(quiet, 0.5).toFixed(1),
    'p99 ms': quietP99.toFixed(1),
    'loaded p50 ms': percentile(loaded, 0.5).toFixed(1),
    'p99 ms ': loadedP99.toFixed(1),
    'p50 ratio': (percentile(loaded, 0.5) / percentile(quiet, 0.5)).toFixed(2),
    'p99 ratio': (loadedP99 / quietP99).toFixed(2),
    ...cpuColumns(sumOfCpu(cpu), toLoad + beside + loaded.length),
    'answers to the load': Object.entries(answers)
      .map(([status, n]) => `${n} × ${status}`)
      .join(', '),
  };
}

/**
 * Lets the clients of the measured tenant repeat `GET /v1/keys` for a number of seconds. Each
 * request must succeed.
 *
 * @returns the times of the requests in milliseconds
 */
export async function neighbour({ baseUrl, tokens }, seconds) {
  const clients = Array.from({ length: NEIGHBOURS }, (_, n) => {
    const headers = { cookie: `svc_session=${tokens[n]}` };
    return new RawClient(`${baseUrl}/v1/keys`, { method: 'GET', headers });
  });
  const latencies = await load(NEIGHBOURS, seconds, (client) => clients[client].send());
  for (const client of clients) client.close();
  return latencies;
}

function withHeaders({ headers = {}, ...each }, more) {
  return { ...each, headers: { ...headers, ...more } };
}

function many(make) {
  return Array.from({ length: 200 }, (_, n) => make(n));
}

function filtered(filter) {
  return `/scim/v2/Users?filter=${encodeURIComponent(filter)}`;
}

function bulkOf(n) {
  const operations = Array.from({ length: 100 }, (_, each) => ({
    method: 'PATCH',
    path: `/Users/${userId((n * 100 + each) % USERS)}`,
    data: patchOf([{ op: 'replace', path: 'title', value: `Title ${n} ${each}` }]),
  }));
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'];
  return JSON.stringify({ schemas, Operations: operations });
}

function members(op) {
  const value = Array.from({ length: 1000 }, (_, n) => ({ value: userId(n) }));
  return JSON.stringify(patchOf([{ op, path: 'members', value }]));
}

function patchOf(operations) {
  return { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: operations };
}

function counted(n) {
  return n.toLocaleString('en-US');
}

function write(text) {
  process.stdout.write(text);
}
