import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuSecondsOf, load, percentile, stayAwake, table } from './measure.js';
import {
  OAuthPerson,
  basicAuthentication,
  libraryClients,
  registerApplications,
} from './oauth-person.js';
import { RawClient } from './raw-client.js';
import { startBareOidcProvider, startBenchServer } from './server.js';

const SECONDS = 2;
const WARM_UP_SECONDS = 2;
const ROUNDS = 3;
const RESOURCE = 'https://api.bench.example';

/** What is measured: each makes its acts, one a client, anew for every turn. */
const SCENARIOS = [
  { what: 'client_credentials, ES256 JWT', aim: 0.8, open: clientCredentials },
  { what: 'introspection', aim: 0.7, open: introspection },
  { what: 'userinfo', open: userinfo },
  { what: 'FAPI 2.0 cycle: PAR, authorize, token', aim: 0.7, open: fapiCycles },
];

/**
 * OAuth as clients use it, all of it durable, beside the bare `oidc-provider` with its store in memory, in the same run. The
 * two take turns; the median turn of each counts, since the machine has other things to do.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  let bare;
  try {
    const everybodys = await Promise.all(
      server.tokens.map((token) => registerApplications(server.baseUrl, token)),
    );
    const clientsFile = join(folder, 'clients.json');
    await writeFile(clientsFile, JSON.stringify(everybodys.flatMap(libraryClients)));
    bare = await startBareOidcProvider(clientsFile);
    const people = ({ baseUrl, tokens = [] }) =>
      everybodys.map((applications, person) => ({
        baseUrl,
        applications,
        cookies: tokens[person] === undefined ? {} : { svc_session: tokens[person] },
      }));
    const ours = { pid: server.pid, people: people(server) };
    const rival = { pid: bare.pid, people: people(bare) };

    let issued = 0;
    const rows = [];
    for (const { what, aim, open } of SCENARIOS) {
      const turns = { ours: [], rival: [] };
      for (let round = 0; round < ROUNDS; round += 1) {
        turns.ours.push(await measure(ours, open, round));
        turns.rival.push(await measure(rival, open, round));
      }
      if (open === clientCredentials) issued = turns.ours.reduce((sum, { acts }) => sum + acts, 0);
      rows.push(row(what, aim, turns));
    }
    const recorded = await server.count("oauth_artifacts WHERE model = 'ClientCredentials'");
    const audited = await server.count("audit_events WHERE type = 'oauth_token_issued'");
    if (Math.min(recorded, audited) < issued) {
      throw new Error('a token was issued that is not on record');
    }
    process.stdout.write(
      `${table(rows)}\n\n` +
        `${everybodys.length} clients, the median of ${ROUNDS} turns of ${SECONDS} s each; fsync, limits, audit and the request log on; ` +
        `each request from an address of its own; the load never sleeps\n` +
        `${recorded} client_credentials tokens and ${audited} audit rows on record\n` +
        `counted is the CPU time of the server process alone, on either side: not that of PostgreSQL, which the bare one has ` +
        `no need of, nor that of the clients, which sign\n`,
    );
  } finally {
    await bare?.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** One turn: how many acts a second of the server's CPU time is good for. The first one warms up. */
async function measure({ pid, people }, open, round) {
  const clients = await open(people);
  const act = (client) => clients[client].act();
  const sleep = stayAwake();
  const warmUp = await load(clients.length, round === 0 ? WARM_UP_SECONDS : 0, act);
  const cpu = cpuSecondsOf(pid);
  const latencies = await load(clients.length, SECONDS, act);
  const used = cpuSecondsOf(pid) - cpu;
  sleep();
  for (const client of clients) client.close();
  return { acts: warmUp.length + latencies.length, rate: latencies.length / used, latencies };
}

function row(what, aim, { ours, rival }) {
  const median = (turns) =>
    percentile(
      turns.map(({ rate }) => rate),
      0.5,
    );
  const latencies = ours.flatMap((turn) => turn.latencies);
  return {
    what,
    'per CPU-second': median(ours).toFixed(0),
    'bare oidc-provider': median(rival).toFixed(0),
    'of bare': (median(ours) / median(rival)).toFixed(2),
    aim: aim ?? '',
    'per second': (latencies.length / (ROUNDS * SECONDS)).toFixed(0),
    'p50 ms': percentile(latencies, 0.5).toFixed(1),
    'p99 ms': percentile(latencies, 0.99).toFixed(1),
  };
}

function clientCredentials(people) {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    resource: RESOURCE,
    scope: 'read',
  }).toString();
  return people.map(({ baseUrl, applications: { service } }) =>
    repeated(
      `${baseUrl}/oauth/token`,
      { method: 'POST', headers: formHeaders(service), body },
      isEs256AccessToken,
    ),
  );
}

/** RFC 9068 §2.1: a JWT of an access token, signed by ES256. */
function isEs256AccessToken(body) {
  const [header] = JSON.parse(body).access_token.split('.');
  const { alg, typ } = JSON.parse(Buffer.from(header, 'base64url').toString());
  return alg === 'ES256' && typ === 'at+jwt';
}

/** Opaque tokens of people, asked about by their client. */
function introspection(people) {
  return withTokens(people, ({ baseUrl, applications: { web } }, token) =>
    repeated(
      `${baseUrl}/oauth/introspect`,
      {
        method: 'POST',
        headers: formHeaders(web),
        body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
      },
      (body) => body.includes('"active":true'),
    ),
  );
}

function userinfo(people) {
  return withTokens(people, ({ baseUrl }, token) =>
    repeated(
      `${baseUrl}/oauth/userinfo`,
      { method: 'GET', headers: { authorization: `Bearer ${token}` } },
      (body) => body.includes('"email"'),
    ),
  );
}

/** Browsers that are logged in, each with the client of its person. */
function fapiCycles(people) {
  return Promise.all(
    people.map(async ({ baseUrl, applications, cookies }) => {
      const person = new OAuthPerson(baseUrl, applications, cookies);
      await person.fapiCycle({ hops: 4 }); // where nobody is logged in yet, they are now
      return { act: () => person.fapiCycle(), close: () => person.close() };
    }),
  );
}

/** Signs everybody in, for a token each: the store in memory forgets the oldest when it has a thousand things. */
function withTokens(people, open) {
  return Promise.all(
    people.map(async (one) => {
      const person = new OAuthPerson(one.baseUrl, one.applications, one.cookies);
      const token = await person.bearerToken();
      person.close();
      return open(one, token);
    }),
  );
}

/** The same request over and over; every answer must be a 200, and right. */
function repeated(url, request, isRight) {
  const client = new RawClient(url, request);
  return {
    async act() {
      const body = await client.send();
      if (!isRight(body)) throw new Error(`${url} answered ${body}`);
    },
    close: () => client.close(),
  };
}

function formHeaders(client) {
  return {
    ...basicAuthentication(client),
    'content-type': 'application/x-www-form-urlencoded',
  };
}
