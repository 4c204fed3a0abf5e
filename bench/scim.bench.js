import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuColumns, startCpuTime, sumOfCpu } from './cpu-time.js';
import { load, measureTurn, percentile, table } from './measure.js';
import { ScimClient } from './scim-client.js';
import {
  benchUser,
  GROUPS,
  groupId,
  LEAVERS,
  MEMBERSHIPS,
  REVOKED,
  ScimData,
  USERS,
  userId,
} from './scim-data.js';
import { startBareScimmy, startBenchServer } from './server.js';

/**
 * The numbers of concurrent clients while CPU time is counted. Latencies are measured with one
 * client.
 */
const CLIENTS = 32;
const LISTING_CLIENTS = 4;
const SECONDS = 3;
const WARM_UP_SECONDS = 1;
const ROUNDS = 2;
const ALONE_SECONDS = 2;
const PAGE = 1000;
const LEAVERS_A_TURN = 150;
const HOSTILE_TIMES = 30;
const KRL_TIMES = 50;
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

const [LARGEST, TEN] = [0, 1].map(groupId);
/** The number of users that no scenario deletes. These users have the smallest ids. */
const STAYING = USERS - LEAVERS;

/**
 * The requests that are measured on both servers. `act` sends one request of a client. `aim` is the
 * wanted number of requests for each second of CPU time, and `aimMs` the wanted milliseconds of one
 * request.
 */
const SHARED = [
  { what: 'POST /Users', aim: 1000, act: create },
  { what: 'GET /Users/id', act: (client) => client.expect(200, 'GET', `/Users/${randomUserId()}`) },
  {
    what: 'filter userName eq',
    aimMs: 10,
    act: (client) => find(client, `userName eq "user-${randomUser()}@scim.bench.example"`),
  },
  { what: 'PATCH user', aim: 1000, act: rename },
  {
    what: 'list of 200',
    aim: 100,
    clients: LISTING_CLIENTS,
    act: (client) => client.expect(200, 'GET', `/Users?startIndex=${1 + randomUser()}&count=200`),
  },
];

/**
 * The scenarios for a comparison of two trees. `target` is the URL of a SCIM service with its
 * token.
 */
export const SCIM_SCENARIOS = SHARED.map((scenario) => ({
  what: `SCIM ${scenario.what}`,
  open: (target) => clientsOf(target, scenario),
}));

/** The requests that are measured on our server only. */
const OURS = [
  {
    what: 'filter externalId eq',
    aimMs: 10,
    act: (client) => find(client, `externalId eq "external-${randomUser()}"`),
  },
  {
    what: 'filter emails.value eq',
    aimMs: 10,
    act: (client) => find(client, `emails.value eq "user-${randomUser()}@scim.bench.example"`),
  },
  {
    what: 'filter emails[type eq "work"].value eq',
    aimMs: 10,
    act: (client) =>
      find(client, `emails[type eq "work"].value eq "user-${randomUser()}@scim.bench.example"`),
  },
  { what: 'filter id eq', aimMs: 10, act: (client) => find(client, `id eq "${randomUserId()}"`) },
  {
    what: 'list of 200 without groups',
    clients: LISTING_CLIENTS,
    act: (client) => client.expect(200, 'GET', '/Users?count=200&excludedAttributes=groups'),
  },
];

/**
 * Hostile requests. Each must get a SCIM error or a harmless answer. None should be slower than a
 * plain list, with which the table compares it.
 */
const HOSTILE = [
  search('60 KB of nested parentheses', `${'('.repeat(30_000)}a${')'.repeat(30_000)}`),
  search('60 KB of an unterminated string', `userName eq "${'a'.repeat(60_000)}`),
  search('60 KB of backslashes', `userName eq "${'\\'.repeat(28_000)}`),
  search('60 KB of not', 'not ('.repeat(12_000)),
  search('NUL in a filter', String.raw`userName eq "a\u0000b"`),
  {
    what: '1,000 operations on __proto__ paths',
    request: patchOf(
      'Users',
      userId(0),
      Array.from({ length: 1000 }, () => ({ op: 'add', path: '__proto__.x', value: 1 })),
    ),
  },
  {
    what: '__proto__ in a body',
    request: ['POST', '/Users', '{"__proto__":{"userName":"a"},"constructor":{"prototype":{}}}'],
  },
  {
    what: 'NUL in a userName',
    request: ['POST', '/Users', JSON.stringify({ userName: 'a\0b' })],
  },
  { what: 'a number as an id', request: ['GET', '/Users/12345'] },
  {
    what: '1,000 numbers as members',
    request: patchOf('Groups', TEN, [
      {
        op: 'add',
        path: 'members',
        value: Array.from({ length: 1000 }, (_, value) => ({ value })),
      },
    ]),
  },
  {
    what: '10,000 bulk operations',
    request: [
      'POST',
      '/Bulk',
      JSON.stringify({ Operations: Array.from({ length: 10_000 }, () => ({})) }),
    ],
  },
];

/**
 * Measures SCIM on a directory of 100,000 users, and for comparison `scimmy-routers` with as many
 * users in memory. It prints the requests for each second of CPU time, and the latency for a single
 * client.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  let bare;
  try {
    const data = new ScimData(server.database);
    const began = performance.now();
    const token = await data.fill();
    write(
      `${counted(USERS)} users, ${counted(GROUPS)} groups, ${counted(MEMBERSHIPS)} memberships: `,
    );
    write(`loaded in ${((performance.now() - began) / 1000).toFixed(0)} s\n\n`);
    bare = await startBareScimmy(USERS);
    const ours = { pid: server.pid, url: `${server.baseUrl}/scim/v2`, token };
    const rival = { pid: bare.pid, url: `${bare.baseUrl}/scim/v2`, token: bare.scimToken };

    const rows = [];
    for (const scenario of SHARED) rows.push(await compare(scenario, ours, rival));
    for (const scenario of OURS) rows.push(await compare(scenario, ours));
    write(`${table(rows)}\n\n`);
    write(
      `${CLIENTS} clients (${LISTING_CLIENTS} that list), the better of ${ROUNDS} turns of ${SECONDS} s each; p50 and p99 are those of a client who is alone, for ` +
        `${ALONE_SECONDS} s; fsync, limits, audit and the request log on; each request from an address of its own; the load never sleeps\n` +
        `per CPU-second: of the server and of all PostgreSQL processes together; scimmy-routers has no PostgreSQL, and "of it" ` +
        `compares the server processes alone. It keeps users in memory and forgets them, and has no audit, limits, versions, ` +
        `If-Match, cursors or bounds on filters; a change of one member loads and writes the whole group: it is asked nothing of ` +
        `the rest\n\n`,
    );
    write(`${table(await others(ours, data, server.baseUrl))}\n\n`);
    write(`${table(await hostile(ours))}\n\n`);
    write(`aim: none slower than the plain list, which is the first line\n`);
  } finally {
    await bare?.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Measures a scenario on both servers alternately. If there is no server to compare with (`rival`),
 * the columns of that server are empty.
 */
async function compare(scenario, ours, rival) {
  const { what, aim, aimMs, act } = scenario;
  progress(what);
  const turns = { ours: [], rival: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    turns.ours.push(await measure(ours, scenario, round));
    if (rival) turns.rival.push(await measure(rival, scenario, round));
  }
  const latencies = await alone(ours, act);
  const theirs = rival && (await alone(rival, act));
  const best = turns.ours.toSorted((a, b) => rateOf(b) - rateOf(a))[0];
  const ofServer = best.latencies.length / best.server;
  const peer = Math.max(...turns.rival.map(rateOf));
  return {
    what,
    'per CPU-second': rateOf(best).toFixed(0),
    'of the server alone': ofServer.toFixed(0),
    ...cpuColumns(best, best.latencies.length),
    aim: aim ?? '',
    'scimmy-routers': rival ? peer.toFixed(0) : '',
    'of it': rival ? (ofServer / peer).toFixed(2) : '',
    'p50 ms': percentile(latencies, 0.5).toFixed(1),
    'p99 ms': percentile(latencies, 0.99).toFixed(1),
    'aim ms': aimMs ?? '',
    'its p99': theirs ? percentile(theirs, 0.99).toFixed(1) : '',
  };
}

/**
 * Returns the number of requests for each second of CPU time. The CPU time is that of the server
 * and all PostgreSQL processes together.
 */
function rateOf({ latencies, server, postgres }) {
  return latencies.length / (server + postgres);
}

/** Measures a scenario once. In the first round, the clients warm up before they are measured. */
function measure(target, scenario, round) {
  const work = { open: () => clientsOf(target, scenario) };
  const warmUpSeconds = round === 0 ? WARM_UP_SECONDS : 0;
  return measureTurn(target.pid, work, { seconds: SECONDS, warmUpSeconds });
}

/**
 * Opens new connections for each measurement, because the server closes a connection that is idle
 * between two measurements.
 */
function clientsOf({ url, token }, { act, clients = CLIENTS }) {
  return Array.from({ length: clients }, () => {
    const client = new ScimClient(url, token);
    return { act: () => act(client), close: () => client.close() };
  });
}

async function alone({ url, token }, act) {
  const client = new ScimClient(url, token);
  const latencies = await load(1, ALONE_SECONDS, () => act(client));
  client.close();
  return latencies;
}

/** Measures the requests that a single client sends, one after the other. */
async function others(ours, data, baseUrl) {
  const client = new ScimClient(ours.url, ours.token);
  const measured = async (what, times, act, aim = '') => {
    progress(what);
    const latencies = [];
    const cpuTime = startCpuTime(ours.pid);
    for (let turn = 0; turn < times; turn += 1) {
      const start = performance.now();
      await act(turn);
      latencies.push(performance.now() - start);
    }
    const used = cpuTime();
    return {
      what,
      'per CPU-second': (times / (used.server + used.postgres)).toFixed(0),
      ...cpuColumns(used, times),
      'p50 ms': percentile(latencies, 0.5).toFixed(1),
      'p99 ms': percentile(latencies, 0.99).toFixed(1),
      aim,
    };
  };
  const rows = [
    ...(await oneMember(ours, client)),
    await measured('1,000 members added by PATCH', 40, (turn) => thousand(client, 'add', turn)),
    await measured('1,000 members removed by PATCH', 40, (turn) =>
      thousand(client, 'remove', turn),
    ),
    await measured('list of 200 groups without members', 100, () =>
      client.expect(200, 'GET', '/Groups?count=200&excludedAttributes=members'),
    ),
    await measured('GET of the group of 100,000', 3, () =>
      client.expect(200, 'GET', `/Groups/${LARGEST}`),
    ),
    await measured(`pages by cursor, each of ${counted(PAGE)}`, ...pagesOf(client)),
    await measured('the same, sorted by userName', ...pagesOf(client, '&sortBy=userName')),
    await measured(
      'DELETE of a user with 20 sessions and 50 certificates',
      LEAVERS_A_TURN,
      (turn) => client.expect(204, 'DELETE', `/Users/${userId(STAYING + turn)}`),
    ),
  ];
  const krl = `${baseUrl}/v1/credentials/ssh/krl`;
  const anonymous = new ScimClient(baseUrl, ours.token);
  const { status } = await anonymous.send('GET', '/v1/credentials/ssh/krl');
  if (status === 404) write(`${krl} is not there: the key revocation list is skipped\n\n`);
  else {
    await data.revoke();
    const list = () => anonymous.expect(200, 'GET', '/v1/credentials/ssh/krl');
    await list();
    rows.push(
      await measured(`KRL of ${counted(REVOKED)} serials`, KRL_TIMES, list, 'p99 under 50 ms'),
    );
  }
  anonymous.close();
  client.close();
  return rows;
}

/**
 * Measures how long it takes to add and to remove one member. Alternates between the small group
 * and the large one, because the speed of the machine changes.
 */
async function oneMember({ pid }, client) {
  const groups = [TEN, LARGEST].map((id) => ({ id, cpu: [], add: [], remove: [] }));
  const changes = 400;
  const timed = async (latencies, request) => {
    const start = performance.now();
    const { status } = await client.send(...request);
    latencies.push(performance.now() - start);
    if (status !== 200 && status !== 204) throw new Error(`a member was not changed: ${status}`);
  };
  // A new user is a member of neither group, so that every request changes something.
  const { id: member } = JSON.parse(await create(client));
  const add = [{ op: 'add', path: 'members', value: [{ value: member }] }];
  const remove = [{ op: 'remove', path: `members[value eq "${member}"]` }];
  for (let batch = -1; batch < 8; batch += 1) {
    for (const group of groups) {
      const isWarmUp = batch < 0;
      const kept = isWarmUp ? { add: [], remove: [] } : group;
      const cpuTime = startCpuTime(pid);
      for (let turn = 0; turn < changes / 8; turn += 1) {
        await timed(kept.add, patchOf('Groups', group.id, add));
        await timed(kept.remove, patchOf('Groups', group.id, remove));
      }
      if (!isWarmUp) group.cpu.push(cpuTime());
    }
  }
  const [ten, largest] = groups;
  const perCpuSecond = ({ cpu }) => {
    const { server, postgres } = sumOfCpu(cpu);
    return (2 * changes) / (server + postgres);
  };
  const rowOf = (group, what, aim = '') => ({
    what: `one member ${what}`,
    'per CPU-second': perCpuSecond(group).toFixed(0),
    ...cpuColumns(sumOfCpu(group.cpu), 2 * changes),
    'p50 ms': percentile(group[what.startsWith('added') ? 'add' : 'remove'], 0.5).toFixed(1),
    'p99 ms': percentile(group[what.startsWith('added') ? 'add' : 'remove'], 0.99).toFixed(1),
    aim,
  });
  const ratio = (name) =>
    `at most 1.2 of the small group's; is ${(percentile(largest[name], 0.5) / percentile(ten[name], 0.5)).toFixed(2)}`;
  return [
    rowOf(ten, 'added to a group of 10'),
    rowOf(largest, 'added to the group of 100,000', ratio('add')),
    rowOf(ten, 'removed from a group of 10'),
    rowOf(largest, 'removed from the group of 100,000', ratio('remove')),
  ];
}

/**
 * Prepares paging through all users. Returns the number of pages, and a function that loads the
 * next one.
 */
function pagesOf(client, more = '') {
  let cursor = '';
  const next = async () => {
    const body = await client.expect(200, 'GET', `/Users?count=${PAGE}&cursor=${cursor}${more}`);
    cursor = /"nextCursor":"([^"]+)"/.exec(body.slice(0, 1000))?.[1] ?? '';
  };
  return [USERS / PAGE, next];
}

async function thousand(client, op, turn) {
  const value = Array.from({ length: 1000 }, (_, n) => ({
    value: userId((turn * 1000 + n) % STAYING),
  }));
  const operations = [{ op, path: 'members', value }];
  const { status } = await client.send(...patchOf('Groups', groupId(2 + turn), operations));
  if (status !== 200 && status !== 204) throw new Error(`1,000 members: ${status}`);
}

/** Measures each hostile request, and a plain list for comparison. */
async function hostile({ url, token, pid }) {
  const client = new ScimClient(url, token);
  const rows = [];
  const inputs = [{ what: 'a plain list', request: ['GET', '/Users'] }, ...HOSTILE];
  let plain;
  for (const { what, request } of inputs) {
    progress(what);
    const { status } = await client.send(...request);
    if (status >= 500) throw new Error(`${what}: ${status}`);
    const latencies = [];
    const cpuTime = startCpuTime(pid);
    for (let turn = 0; turn < HOSTILE_TIMES; turn += 1) {
      const start = performance.now();
      await client.expect(status, ...request);
      latencies.push(performance.now() - start);
    }
    const used = cpuTime();
    const p50 = percentile(latencies, 0.5);
    plain ??= p50;
    rows.push({
      what,
      answer: status,
      'p50 ms': p50.toFixed(1),
      'p99 ms': percentile(latencies, 0.99).toFixed(1),
      ...cpuColumns(used, HOSTILE_TIMES),
      'of a list': (p50 / plain).toFixed(2),
    });
  }
  client.close();
  return rows;
}

let created = 0;
let renamed = 0;

function create(client) {
  created += 1;
  return client.expect(201, 'POST', '/Users', JSON.stringify(benchUser(USERS + created)));
}

/** Sends the request that Entra sends if a user moves to another department. */
function rename(client) {
  const n = randomUser();
  renamed += 1;
  const operations = [
    { op: 'Replace', path: 'title', value: `Title ${renamed}` },
    { op: 'Replace', path: 'name.givenName', value: `Given${n}` },
    { op: 'Add', path: `${ENTERPRISE}:department`, value: `Department ${n % 100}` },
  ];
  return client.expect(200, ...patchOf('Users', userId(n), operations));
}

async function find(client, filter) {
  const body = await client.expect(200, 'GET', `/Users?filter=${encodeURIComponent(filter)}`);
  if (!body.includes('"totalResults":1')) throw new Error(`${filter} found ${body}`);
}

function search(what, filter) {
  const body = JSON.stringify({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'],
    filter,
  });
  return { what, request: ['POST', '/Users/.search', body] };
}

function patchOf(type, id, operations) {
  const body = JSON.stringify({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: operations,
  });
  return ['PATCH', `/${type}/${id}`, body];
}

function randomUser() {
  return Math.floor(Math.random() * STAYING);
}

function randomUserId() {
  return userId(randomUser());
}

function counted(number) {
  return number.toLocaleString('en');
}

/**
 * Writes the name of the current measurement to standard error, because the whole takes minutes.
 */
function progress(what) {
  process.stderr.write(`${what}\n`);
}

function write(text) {
  process.stdout.write(text);
}
