import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuColumns, sumOfCpu } from './cpu-time.js';
import { measureTurn, percentile, table } from './measure.js';
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

/**
 * The scenarios. `open` connects a client for each person before each measurement. `aim` is the
 * wanted ratio of our speed to that of the bare `oidc-provider`.
 */
const SCENARIOS = [
  { what: 'client_credentials, ES256 JWT', aim: 0.8, open: clientCredentials },
  { what: 'introspection', aim: 0.7, open: introspection },
  { what: 'userinfo', open: userinfo },
  { what: 'FAPI 2.0 cycle: PAR, authorize, token', aim: 0.7, open: fapiCycles },
];

/**
 * The scenarios for a comparison of two trees. {@link prepareOAuth} registers the applications at
 * the server of each tree.
 */
export const OAUTH_SCENARIOS = SCENARIOS.map(({ what, open }) => ({ what, open }));

/**
 * Registers the applications of every person.
 * @returns the people, for the scenarios
 */
export async function prepareOAuth({ baseUrl, tokens }) {
  const applications = await Promise.all(
    tokens.map((token) => registerApplications(baseUrl, token)),
  );
  return peopleOf(baseUrl, applications, tokens);
}

/**
 * Measures the requests of OAuth clients on our server, which has a durable store, and on the bare
 * `oidc-provider`, whose store is in memory. Both are measured alternately, and the median
 * measurement of each counts, since the machine runs other programs too.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  let bare;
  try {
    const people = await prepareOAuth(server);
    const registered = people.map(({ applications }) => applications);
    const clientsFile = join(folder, 'clients.json');
    await writeFile(clientsFile, JSON.stringify(registered.flatMap(libraryClients)));
    bare = await startBareOidcProvider(clientsFile);
    const ours = { pid: server.pid, people };
    const rival = { pid: bare.pid, people: peopleOf(bare.baseUrl, registered, []) };

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
        `${people.length} clients, the median of ${ROUNDS} turns of ${SECONDS} s each; fsync, limits, audit and the request log on; ` +
        `each request from an address of its own; the load never sleeps\n` +
        `${recorded} client_credentials tokens and ${audited} audit rows on record\n` +
        `per CPU-second: of the server and of all PostgreSQL processes together; the bare one has no PostgreSQL, and "of bare" ` +
        `compares the server processes alone; the clients, which sign, are not counted\n`,
    );
  } finally {
    await bare?.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Measures a scenario once. In the first round, the clients warm up before they are measured. */
function measure({ pid, people }, open, round) {
  const warmUpSeconds = round === 0 ? WARM_UP_SECONDS : 0;
  return measureTurn(pid, { open: () => open(people) }, { seconds: SECONDS, warmUpSeconds });
}

function row(what, aim, { ours, rival }) {
  const median = (turns, secondsOf) =>
    percentile(
      turns.map((turn) => turn.latencies.length / secondsOf(turn)),
      0.5,
    );
  const ofServer = ({ server }) => server;
  const together = ({ server, postgres }) => server + postgres;
  const latencies = ours.flatMap((turn) => turn.latencies);
  return {
    what,
    'per CPU-second': median(ours, together).toFixed(0),
    'of the server alone': median(ours, ofServer).toFixed(0),
    ...cpuColumns(sumOfCpu(ours), latencies.length),
    'bare oidc-provider': median(rival, ofServer).toFixed(0),
    'of bare': (median(ours, ofServer) / median(rival, ofServer)).toFixed(2),
    aim: aim ?? '',
    'per second': (latencies.length / (ROUNDS * SECONDS)).toFixed(0),
    'p50 ms': percentile(latencies, 0.5).toFixed(1),
    'p99 ms': percentile(latencies, 0.99).toFixed(1),
  };
}

/** Returns the people of a server, each with the cookie of a session if there is one. */
function peopleOf(baseUrl, registered, tokens) {
  return registered.map((applications, person) => ({
    baseUrl,
    applications,
    cookies: tokens[person] === undefined ? {} : { svc_session: tokens[person] },
  }));
}

export function clientCredentials(people) {
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

/**
 * Returns true if a token response has a JWT access token (RFC 9068 §2.1) that is signed by ES256.
 */
function isEs256AccessToken(body) {
  const [header] = JSON.parse(body).access_token.split('.');
  const { alg, typ } = JSON.parse(Buffer.from(header, 'base64url').toString());
  return alg === 'ES256' && typ === 'at+jwt';
}

/**
 * Opens a client for each person. Each client introspects an opaque access token, as the
 * application to which the token was issued.
 */
export function introspection(people) {
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

/** Opens browsers that are logged in, each with the FAPI client of its person. */
function fapiCycles(people) {
  return Promise.all(
    people.map(async ({ baseUrl, applications, cookies }) => {
      const person = new OAuthPerson(baseUrl, applications, cookies);
      await person.fapiCycle({ hops: 4 }); // logs the person in if the browser is not logged in yet
      return { act: () => person.fapiCycle(), close: () => person.close() };
    }),
  );
}

/**
 * Gets a token for each person. Each measurement needs new tokens, because the bare `oidc-provider`
 * keeps at most a thousand entries in memory, and drops the oldest.
 */
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

/** Opens a client that repeats a request. Every answer must be 200 and have the right body. */
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
