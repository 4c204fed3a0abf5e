import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { HttpClient } from './http-client.js';
import { cpuColumns, startCpuTime } from './cpu-time.js';
import { percentile, table } from './measure.js';
import { DOMAIN, LEAVERS, leaverId, MillionData, sizesOf } from './million-data.js';
import { ScimClient } from './scim-client.js';
import { groupId, userId } from './scim-data.js';
import { startBenchServer } from './server.js';
import { makeCaKey } from './ssh.bench.js';

const SMALL = 10_000;
const LARGE = 1_000_000;
// The number of requests for each path. After five uses, PostgreSQL may keep one plan of a prepared
// statement for good, so that more requests than that must be measured.
const TIMES = 60;
const MOST = 2;

const SCIM = '/scim/v2';
const AUDIT = '/api/v1/org/audit-events';
const JSON_TYPE = { 'content-type': 'application/json' };

/**
 * Measures the latency of every path of the service for a single client. The organization has
 * 10,000 users at first, and then a million. Each user has 20 audit events, 6 memberships and 5
 * certificates.
 *
 * @param large the number of users of the large organization; a smaller one suits a small machine
 */
export async function run(large = String(LARGE)) {
  Logger.overrideLogger(false);
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const caFile = await makeCaKey(folder);
  const server = await startBenchServer(folder, { SVC_SSH_CA_KEY_PATH: caFile });
  try {
    const data = new MillionData(server.database);
    const tokens = await data.begin();
    const results = [];
    for (const users of [SMALL, Number(large)]) {
      const began = performance.now();
      await data.grow(users);
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      const sizes = Object.entries(sizesOf(users)).map(([what, n]) => `${counted(n)} ${what}`);
      write(`${sizes.join(', ')}: loaded in ${seconds} s\n`);
      results.push(await measureAll(server, tokens, data, users, results.length));
    }
    write(`\n${table(compared(...results, Number(large)))}\n\n`);
    write(
      `one client alone, ${TIMES} requests of a path, each for another user; fsync, limits and audit on\n` +
        'first p50: rows that no request has read yet, from the disk; p50: the same users again, from memory; CPU time: that of the latter\n' +
        `aim for p50: none more than ${MOST} times slower, but what is said to read everything\n`,
    );
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function compared(small, large, users) {
  return small.map(({ what, readsAll, times }, n) => {
    const { first, times: last, cpu } = large[n];
    const [before, after] = [times, last].map((all) => percentile(all, 0.5));
    const ratio = after / before;
    const within = ratio <= MOST ? 'yes' : 'NO';
    return {
      what,
      [`${counted(SMALL)}: p50 ms`]: before.toFixed(1),
      [`${counted(users)}: first p50`]: percentile(first, 0.5).toFixed(1),
      'p50 ms': after.toFixed(1),
      'p99 ms': percentile(last, 0.99).toFixed(1),
      ...cpuColumns(cpu, TIMES),
      ratio: ratio.toFixed(2),
      [`within ${MOST}`]: readsAll ? 'reads everything' : within,
    };
  });
}

/**
 * Measures all paths on one organization.
 * @param round 0 for the small organization, 1 for the large one, so that new resources have other
 *   names
 */
async function measureAll(server, tokens, data, users, round) {
  const scim = new ScimClient(server.baseUrl, tokens.scim);
  const admin = new HttpClient(server.baseUrl, { svc_session: tokens.admin });
  const person = new HttpClient(server.baseUrl, { svc_session: server.tokens[0] });
  const results = [];
  for (const path of pathsOf({ scim, admin, person, server, users, round })) {
    if (process.stderr.isTTY) process.stderr.write(`${path.what}\n`);
    await data.touch();
    results.push({ ...path, ...(await timesOf(server.pid, path)) });
  }
  for (const client of [scim, admin, person]) client.close();
  return results;
}

/**
 * Measures a path in two passes over the same users. Only the second pass counts, because in the
 * first one PostgreSQL may still read the rows from the disk. If the path fails, its row has no
 * times, and the other paths are still measured.
 */
async function timesOf(pid, { what, act }) {
  const passes = [[], []];
  let cpuTime;
  try {
    for (const [pass, times] of passes.entries()) {
      chance.restart();
      cpuTime = startCpuTime(pid);
      for (let turn = 0; turn < TIMES; turn += 1) {
        const start = performance.now();
        await act(pass * TIMES + turn);
        times.push(performance.now() - start);
      }
    }
    return { first: passes[0], times: passes[1], cpu: cpuTime() };
  } catch (error) {
    write(`${what} failed: ${error.message}\n`);
    const none = [Number.NaN];
    return { first: none, times: none, cpu: { server: Number.NaN, postgres: Number.NaN } };
  }
}

/**
 * Returns numbers from 0 to 1 that look random. After a restart they come again in the same order.
 * The algorithm is mulberry32.
 */
const chance = {
  state: 0,
  restart() {
    this.state = 20_261_122;
  },
  next() {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  },
};

function pathsOf({ scim, admin, person, server, users, round }) {
  const some = () => 10 + Math.floor(chance.next() * (users - 10));
  const someGroup = () => groupId(2 + Math.floor(chance.next() * (users / 20 - 2)));
  const address = () => `user-${some()}@${DOMAIN}`;
  const get = (path) => scim.expect(200, 'GET', `${SCIM}${path}`);
  const filter = (type, text) => get(`/${type}?filter=${encodeURIComponent(text)}`);
  const ask = async (client, path) => expectOk(path, await client.open(path));
  const audit = (query) => ask(admin, `${AUDIT}?${query}`);
  const patch = (path, ...operations) => scim.send('PATCH', `${SCIM}${path}`, patchOf(operations));
  const member = (group) => async (turn) => {
    const id = userId(users - 1 - Math.floor(turn / 2));
    const [add, remove] = [
      { op: 'add', path: 'members', value: [{ value: id }] },
      { op: 'remove', path: `members[value eq "${id}"]` },
    ];
    const { status } = await patch(`/Groups/${group()}`, turn % 2 ? add : remove);
    if (status !== 200 && status !== 204) throw new Error(`PATCH of a member: ${status}`);
  };
  const memberAct = async (turn, act) => {
    const path = `/api/v1/org/members/${userId(some())}/${act}`;
    const answer = await admin.postJson(path, {}, sessionOf(admin, server));
    expectOk(path, answer);
  };
  const everybody = groupId(0);
  const small = groupId(1);
  const middle = new Date(Date.now() - 86_400_000 + users * 10).toISOString();
  const deep = userId(Math.floor(users / 2));
  return [
    { what: 'token look-up: GET /v1/keys', act: () => ask(person, '/v1/keys') },
    { what: 'filter userName eq', act: () => filter('Users', `userName eq "${address()}"`) },
    {
      what: 'filter externalId eq',
      act: () => filter('Users', `externalId eq "external-${some()}"`),
    },
    { what: 'filter id eq', act: () => filter('Users', `id eq "${userId(some())}"`) },
    {
      what: 'filter emails.value eq',
      act: () => filter('Users', `emails.value eq "${address()}"`),
    },
    {
      what: 'filter emails[type eq "work"].value eq',
      act: () => filter('Users', `emails[type eq "work" and value eq "${address()}"]`),
    },
    {
      what: 'filter userName eq, of no user',
      act: () => filter('Users', `userName eq "nobody-${some()}@x.example"`),
    },
    { what: 'GET /Users/id', act: () => get(`/Users/${userId(some())}`) },
    {
      what: 'groups: displayName eq',
      act: () => filter('Groups', `displayName eq "Group ${2 + (some() % (users / 20 - 2))}"`),
    },
    {
      what: 'groups: externalId eq',
      act: () => filter('Groups', `externalId eq "group-${2 + (some() % (users / 20 - 2))}"`),
    },
    { what: 'GET /Groups/id', act: () => get(`/Groups/${someGroup()}`) },
    {
      what: 'GET of the largest, no members',
      act: () => get(`/Groups/${everybody}?attributes=id`),
    },
    {
      what: 'largest group: is X a member?',
      act: () => {
        const text = `id eq "${everybody}" and members[value eq "${userId(some())}"]`;
        return get(`/Groups?attributes=id&filter=${encodeURIComponent(text)}`);
      },
    },
    {
      what: 'POST /Users',
      act: (turn) =>
        scim.expect(201, 'POST', `${SCIM}/Users`, newUser(`new-${round}-${turn}@${DOMAIN}`)),
    },
    {
      what: 'PATCH of a user',
      act: (turn) =>
        patch(`/Users/${userId(some())}`, { op: 'replace', path: 'title', value: `T ${turn}` }),
    },
    { what: 'PATCH of a member, group of 10', act: member(() => small) },
    { what: 'PATCH of a member, group of all', act: member(() => everybody) },
    {
      what: 'DELETE of a user (20 sessions, 50 certificates)',
      act: (turn) => {
        const id = leaverId((turn + round * 2 * TIMES) % LEAVERS);
        return scim.expect(204, 'DELETE', `${SCIM}/Users/${id}`);
      },
    },
    {
      what: 'deactivation by SCIM',
      act: (turn) =>
        patch(`/Users/${userId(some())}`, { op: 'replace', path: 'active', value: turn < TIMES }),
    },
    {
      what: 'promotion by an admin',
      act: (turn) => memberAct(turn, turn >= TIMES ? 'promote' : 'demote'),
    },
    {
      what: 'SSH certificate',
      act: async () => {
        const body = { public_key: server.publicKeyLine };
        const path = '/v1/credentials/ssh';
        expectOk(path, await person.postJson(path, body, sessionOf(person, server)));
      },
    },
    { what: 'key revocation list', act: () => ask(person, '/v1/credentials/ssh/krl') },
    { what: 'one serial of it', act: () => ask(person, `/v1/credentials/ssh/krl/${1e6 + some()}`) },
    { what: 'audit: first page', act: () => audit('limit=100') },
    { what: 'audit: a page in the middle', act: () => audit(`limit=100&to=${middle}`) },
    { what: 'audit: a type', act: () => audit('type=ssh_credential') },
    { what: 'audit: a type without events', act: () => audit('type=admin_demote') },
    { what: 'audit: a user', act: () => audit(`user=${userId(some())}`) },
    { what: 'audit: an address', act: () => audit(`email=${address()}`) },
    { what: 'audit: an unknown address', act: () => audit('email=nobody@x.example') },
    {
      what: 'audit: an address and a type',
      act: () => audit(`email=${address()}&type=login_success`),
    },
    { what: 'members: first page', act: () => ask(admin, '/api/v1/org/members') },
    {
      what: 'members: a page in the middle',
      act: () => ask(admin, `/api/v1/org/members?after=${deep}`),
    },
    { what: 'applications', act: () => ask(admin, '/api/v1/applications') },
    { what: 'list of 100 users: totalResults', readsAll: true, act: () => get('/Users?count=100') },
    {
      what: 'list of 100, at the middle',
      readsAll: true,
      act: () => get(`/Users?count=100&startIndex=${users / 2}`),
    },
    { what: 'filter without an index', readsAll: true, act: () => scan(scim) },
  ];
}

/** Sends a search that reads all users. It may be refused as too costly. */
async function scan(scim) {
  const path = `${SCIM}/Users?filter=${encodeURIComponent('title eq "Nobody"')}`;
  const { status } = await scim.send('GET', path);
  if (status !== 200 && status !== 400) throw new Error(`GET ${path}: ${status}`);
}

function sessionOf(client, { baseUrl }) {
  return { ...JSON_TYPE, origin: baseUrl, cookie: client.cookie };
}

function expectOk(path, { status, body }) {
  if (status !== 200) throw new Error(`${path}: ${status} ${body}`);
}

function newUser(userName) {
  const emails = [{ value: userName, type: 'work', primary: true }];
  return JSON.stringify({ userName, emails, displayName: 'New' });
}

function patchOf(operations) {
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
  return JSON.stringify({ schemas, Operations: operations });
}

function counted(n) {
  return n.toLocaleString('en-US');
}

function write(text) {
  process.stdout.write(text);
}
