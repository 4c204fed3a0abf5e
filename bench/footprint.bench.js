import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import '../test/support/typescript-hooks.js';
import { cpuSecondsOf, startCpuTime } from './cpu-time.js';
import { enroll, publicKeyLine } from './enroll.js';
import { load, percentile, table } from './measure.js';
import { memoryOf, watchMemory } from './memory.js';
import { OAUTH_SCENARIOS, prepareOAuth } from './oauth.bench.js';
import { ScimClient } from './scim-client.js';
import { ScimData } from './scim-data.js';
import { makeCaKey, SSH_SCENARIOS } from './ssh.bench.js';

const { startDebianPostgres } = await import('../test/support/debian-postgres.ts');

const TREE = dirname(import.meta.dirname);
/**
 * The largest accepted value of each figure: milliseconds until the server is ready, and MiB of
 * resident memory.
 */
const LIMITS = { ready: 1000, idle: 140, loaded: 300 };
/** The seconds without requests after which a server counts as idle. */
const IDLE_SECONDS = 5;
const PEOPLE = 32;
const SCIM_USERS = 2000;
const CLIENT = { clientId: 'svc', clientSecret: 'the secret of the bench client' };

/**
 * The kinds of requests under which the memory is measured. Each has several clients at the same
 * time.
 */
const WORKS = [
  { what: 'SSH certificates, 32 clients', open: SSH_SCENARIOS[1].open },
  {
    what: 'client_credentials, 32 clients',
    prepare: prepareOAuth,
    open: OAUTH_SCENARIOS[0].open,
  },
  { what: 'SCIM lists of 200, 4 clients', prepare: prepareScim, open: scimClients },
];

/**
 * Measures how long the built server takes until it is ready, and its memory when it is idle and
 * under load. The database exists already, on Debian's PostgreSQL. It also prints CPU times,
 * because a busy machine changes them less than elapsed times, though still by up to a factor of
 * two. Ends with status 1 if a figure is over its limit.
 *
 * @param args `[--starts=9] [--seconds=8] [--flags=FLAGS]`: the number of starts, the seconds of
 *   each kind of request, and the flags of Node.js for the server, such as
 *   `--flags=--max-semi-space-size=16`, by default those of `npm start`
 */
export async function run(...args) {
  const { starts, seconds, flags } = optionsOf(args);
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const postgres = await startDebianPostgres();
  const port = 20_000 + (process.pid % 12_000); // below the ports of outgoing connections
  const baseUrl = `http://localhost:${port}`;
  const idp = await startDemoIdentityProvider({
    ...CLIENT,
    redirectUri: `${baseUrl}/oauth/callback`,
  });
  const shared = { folder, postgres, baseUrl, port, issuer: idp.issuer, flags };
  try {
    const started = await measureStarts(shared, starts);
    const loaded = await measureLoad(shared, seconds);
    report(started, loaded, { starts, seconds });
  } finally {
    await idp.close();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function optionsOf(args) {
  const { values } = parseArgs({
    args,
    options: {
      starts: { type: 'string', default: '9' },
      seconds: { type: 'string', default: '8' },
      flags: { type: 'string', default: flagsOfStart() },
    },
  });
  const [starts, seconds] = [Number(values.starts), Number(values.seconds)];
  if (!(starts >= 1) || !(seconds > 0)) {
    process.stderr.write(
      'usage: npm run bench -- footprint [--starts=9] [--seconds=8] [--flags=FLAGS]\n',
    );
    process.exit(2);
  }
  const flags = values.flags.split(' ').filter((flag) => flag !== '');
  return { starts, seconds, flags };
}

/** Returns the flags of Node.js with which `npm start` runs the server. */
function flagsOfStart() {
  const { scripts } = JSON.parse(readFileSync(join(TREE, 'package.json'), 'utf8'));
  return scripts.start.split(' ').slice(1, -1).join(' ');
}

/**
 * Starts the server of production several times, and measures each start except the first. The
 * first start is not measured, because it makes the database.
 */
async function measureStarts(shared, starts) {
  const environment = await environmentOf(shared, 'production');
  await (await startServer(['dist/main.js'], environment, shared)).stop();
  const milliseconds = [];
  const cpu = [];
  let idle;
  for (let start = 1; start <= starts; start += 1) {
    const server = await startServer(['dist/main.js'], environment, shared);
    milliseconds.push(server.milliseconds);
    cpu.push(cpuSecondsOf(server.pid).server * 1000);
    if (start === starts) {
      await delay(IDLE_SECONDS * 1000);
      idle = memoryOf(server.pid);
    }
    await server.stop();
  }
  return { milliseconds, cpu, idle };
}

/** Measures the memory of one server under each kind of request, one kind after the other. */
async function measureLoad(shared, seconds) {
  const key = new SoftwareKey();
  const rootFile = join(shared.folder, 'root.pem');
  await writeFile(rootFile, key.rootPem);
  const environment = await environmentOf(shared, 'load');
  const server = await startServer(['bench/footprint-process.js', rootFile], environment, shared);
  try {
    const { baseUrl } = shared;
    const tokens = [];
    for (let person = 0; person < PEOPLE; person += 1) {
      tokens.push(await enroll({ baseUrl, key, person }));
    }
    const database = { connectionString: environment.SVC_DATABASE_URL };
    const target = { baseUrl, tokens, publicKeyLine: publicKeyLine(), database };
    const rows = [];
    for (const { what, prepare, open } of WORKS) {
      const clients = await open(prepare ? await prepare(target) : target);
      const cpuTime = startCpuTime(server.pid);
      const { acts, highest } = await watchMemory(server.pid, async () => {
        const latencies = await load(clients.length, seconds, (n) => clients[n].act());
        return latencies.length;
      });
      const cpu = cpuTime().server;
      for (const client of clients) client.close();
      rows.push({ what, acts, cpu, highest, after: memoryOf(server.pid) });
    }
    await delay(IDLE_SECONDS * 1000);
    return { rows, later: memoryOf(server.pid) };
  } finally {
    await server.stop();
  }
}

async function prepareScim({ baseUrl, database }) {
  const token = await new ScimData(database).fillUsers(SCIM_USERS);
  return { url: `${baseUrl}/scim/v2`, token };
}

function scimClients({ url, token }) {
  return Array.from({ length: 4 }, () => {
    const client = new ScimClient(url, token);
    const startIndex = () => 1 + Math.floor(Math.random() * (SCIM_USERS - 200));
    return {
      act: () => client.expect(200, 'GET', `/Users?startIndex=${startIndex()}&count=200`),
      close: () => client.close(),
    };
  });
}

/** Makes an empty database, and returns the settings of a server on it. */
async function environmentOf({ folder, postgres, baseUrl, port, issuer }, name) {
  const admin = new Client({ connectionString: postgres.url('postgres', 'postgres') });
  await admin.connect();
  await admin.query(`CREATE ROLE ${name} LOGIN`);
  await admin.query(`CREATE DATABASE ${name} OWNER ${name}`);
  await admin.end();
  const data = await mkdtemp(join(folder, 'data-'));
  const encoding = { type: 'pkcs8', format: 'pem' };
  const pem = (type, options) => generateKeyPairSync(type, options).privateKey.export(encoding);
  return {
    PATH: process.env.PATH,
    SVC_BASE_URL: baseUrl,
    SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_DATA_DIR: data,
    SVC_DATABASE_URL: postgres.url(name, name),
    SVC_JWT_SECRET: 'a root secret that only the bench knows',
    SVC_OIDC_SIGNING_KEY: pem('ec', { namedCurve: 'P-256' }),
    SVC_OIDC_RSA_SIGNING_KEY: pem('rsa', { modulusLength: 3072 }),
    SVC_SSH_CA_KEY_PATH: await makeCaKey(data),
    SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
    SVC_IDPS: 'demo',
    SVC_IDP_DEMO_TYPE: 'oidc',
    SVC_IDP_DEMO_ISSUER: issuer,
    SVC_IDP_DEMO_CLIENT_ID: CLIENT.clientId,
    SVC_IDP_DEMO_CLIENT_SECRET: CLIENT.clientSecret,
    SVC_LOG_FORMAT: 'json',
  };
}

/**
 * Starts a program of this tree.
 * @returns the process, and the milliseconds until it was ready
 */
async function startServer(args, env, { baseUrl, flags }) {
  const began = performance.now();
  const child = spawn(process.execPath, [...flags, ...args], {
    cwd: TREE,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  while (!(await isReady(baseUrl))) {
    if (child.exitCode !== null) throw new Error(`${args[0]} did not start`);
    await delay(5);
  }
  const milliseconds = performance.now() - began;
  return {
    pid: child.pid,
    milliseconds,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function isReady(baseUrl) {
  return new Promise((resolve) => {
    get(`${baseUrl}/health/ready`, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on('error', () => resolve(false));
  });
}

function report({ milliseconds, cpu, idle }, { rows, later }, { starts, seconds }) {
  const median = percentile(milliseconds, 0.5);
  const loaded = Math.max(...rows.map(({ highest }) => highest));
  const figures = [
    { figure: `ready, ms (median of ${starts})`, is: median, limit: LIMITS.ready },
    { figure: `idle for ${IDLE_SECONDS} s, MiB`, is: idle, limit: LIMITS.idle },
    { figure: 'loaded, MiB (highest)', is: loaded, limit: LIMITS.loaded },
  ];
  const works = rows.map(({ what, acts, cpu: used, highest, after }) => ({
    work: what,
    acts,
    'CPU µs each': ((used * 1e6) / acts).toFixed(0),
    'highest MiB': highest.toFixed(0),
    'at the end': after.toFixed(0),
  }));
  process.stdout.write(
    `${table(figures.map(({ figure, is, limit }) => ({ figure, measured: is.toFixed(0), limit, over: is > limit ? 'YES' : 'no' })))}\n\n` +
      `${table(works)}\n\n` +
      `starts: ${milliseconds.map((ms) => ms.toFixed(0)).join(', ')} ms; ` +
      `CPU until ready: ${cpu.map((ms) => ms.toFixed(0)).join(', ')} ms; ${seconds} s for each work; ` +
      `${IDLE_SECONDS} s after the load: ${later.toFixed(0)} MiB\n` +
      `PostgreSQL of Debian, which counts in no figure; MiB: resident memory of the process of the server\n`,
  );
  if (figures.some(({ is, limit }) => is > limit)) process.exitCode = 1;
}
