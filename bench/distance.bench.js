import { onDebianPostgres } from './debian-server.js';
import { startDelayProxy } from './delay-proxy.js';
import { percentile, table } from './measure.js';
import { introspection, prepareOAuth } from './oauth.bench.js';
import { ScimClient } from './scim-client.js';
import { clientsOf } from './ssh.bench.js';

const REQUESTS = 20;
const WARM_UP = 6;

/**
 * Measures for how many round trips to PostgreSQL a request waits: an SSH certificate, an
 * introspection, and SCIM GET of a user. A proxy delays each round trip by 80 ms. One client sends
 * one request after another, each from a new client IP address, so that the rate limiter asks the
 * database. On a busy machine a longer delay shows the number of round trips more clearly.
 *
 * @param distance the milliseconds of a round trip
 */
export async function run(distance = '80') {
  const roundTrip = Number(distance);
  let proxy;
  const rows = [];
  try {
    await onDebianPostgres(
      async ({ server }) => {
        for (const [what, open] of Object.entries(PATHS)) {
          proxy.setRoundTrip(0);
          const client = await open(server);
          proxy.setRoundTrip(roundTrip);
          rows.push(rowOf(what, await latenciesOf(client), roundTrip));
        }
        proxy.setRoundTrip(0);
      },
      async (postgres) => {
        proxy = await startDelayProxy(postgres.port);
        const url = postgres.url('svc', 'svc').replace(`:${postgres.port}/`, `:${proxy.port}/`);
        return { SVC_DATABASE_URL: url };
      },
      1,
    );
  } finally {
    proxy?.close();
  }
  process.stdout.write(
    `${table(rows)}\n\n${roundTrip} ms of distance, the median of ${REQUESTS} requests\n`,
  );
}

/**
 * The requests that are measured. Each function opens a client that sends them for the first
 * person.
 */
const PATHS = {
  'SSH certificate': async (server) => clientsOf(server)[0],
  introspection: async (server) => (await introspection(await prepareOAuth(server)))[0],
  'SCIM GET /Users/id': scimUser,
};

async function scimUser({ baseUrl, tokens: [admin] }) {
  const made = await fetch(`${baseUrl}/api/v1/org/scim-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({ description: 'bench' }),
  });
  if (!made.ok) throw new Error(await made.text());
  const { token } = await made.json();
  const client = new ScimClient(`${baseUrl}/scim/v2`, token);
  const body = JSON.stringify({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    userName: 'far@bench.example',
  });
  const { id } = JSON.parse(await client.expect(201, 'POST', '/Users', body));
  return {
    act: () => client.expect(200, 'GET', `/Users/${id}`),
    close: () => client.close(),
  };
}

async function latenciesOf({ act, close }) {
  const latencies = [];
  for (let n = 0; n < WARM_UP + REQUESTS; n += 1) {
    const start = performance.now();
    await act();
    latencies.push(performance.now() - start);
  }
  close();
  return latencies.slice(WARM_UP);
}

function rowOf(what, latencies, roundTrip) {
  const median = percentile(latencies, 0.5);
  return {
    what,
    'p50 ms': median.toFixed(0),
    'round trips': (median / roundTrip).toFixed(2),
    fewest: (Math.min(...latencies) / roundTrip).toFixed(2),
  };
}
