import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gcra } from '../dist/platform/gcra/gcra.js';
import { TIERS } from '../dist/platform/rate-limit/buckets/tiers.js';
import { cpuColumns } from './cpu-time.js';
import { measureTurn, percentile, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { startBareNest, startBenchServer } from './server.js';

const CLIENTS = 32;
const SECONDS = 5;
const WARM_UP_SECONDS = 2;
const ROUNDS = 2;

/**
 * The routes that are measured: one that has neither a rate limit nor a session, and one that has
 * both.
 */
export const EDGE_SCENARIOS = [
  { what: 'GET /health', open: ({ baseUrl }) => clientsOf(`${baseUrl}/health`) },
  {
    what: 'GET /v1/keys',
    open: ({ baseUrl, tokens }) =>
      clientsOf(`${baseUrl}/v1/keys`, (n) => ({ authorization: `Bearer ${tokens[n]}` })),
  },
];

/**
 * Measures the cost of everything around a handler, and the cost of a bare Nest for comparison.
 * Both are measured alternately, and the better measurement of each counts, since the machine runs
 * other programs too.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder, {
    SVC_METRICS_BEARER_TOKEN: 'the token of a scraper',
  });
  const bare = await startBareNest();
  try {
    const contenders = [
      {
        what: 'bare Nest, GET /hello',
        pid: bare.pid,
        open: () => clientsOf(`${bare.baseUrl}/hello`),
      },
      ...EDGE_SCENARIOS.map(({ what, open }) => ({
        what,
        pid: server.pid,
        open: () => open(server),
      })),
    ];
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const contender of contenders) {
        const measured = await measureTurn(contender.pid, contender, {
          seconds: SECONDS,
          warmUpSeconds: WARM_UP_SECONDS,
        });
        measured.rate = measured.latencies.length / (measured.server + measured.postgres);
        if (measured.rate > (contender.best?.rate ?? 0)) contender.best = measured;
      }
    }
    const [{ best: peer }] = contenders;
    const rows = contenders.map(({ what, best }) => ({
      what,
      'per CPU-second': best.rate.toFixed(0),
      'of bare Nest': (best.rate / peer.rate).toFixed(2),
      ...cpuColumns(best, best.latencies.length),
      'per second': (best.latencies.length / SECONDS).toFixed(0),
      'p50 ms': percentile(best.latencies, 0.5).toFixed(1),
      'p99 ms': percentile(best.latencies, 0.99).toFixed(1),
    }));
    process.stdout.write(
      `${table(rows)}\n\n` +
        `one decision of the limiter: ${decisionNanoseconds().toFixed(0)} ns\n` +
        `${CLIENTS} clients, the better of ${ROUNDS} turns of ${SECONDS} s; limits, metrics and the request log on; each request ` +
        `from an address of its own; the load never sleeps\n` +
        `per CPU-second: of the server and of all PostgreSQL processes together\naim: 0.6 of bare Nest on /health\n`,
    );
  } finally {
    await bare.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function clientsOf(url, headers = () => ({})) {
  return Array.from({ length: CLIENTS }, (_, n) => {
    const client = new RawClient(url, { method: 'GET', headers: headers(n) });
    return { act: () => client.send(), close: () => client.close() };
  });
}

/**
 * Returns the mean nanoseconds of a decision about the rate limit. The decisions go through many
 * buckets one after the other, and some of the buckets refuse.
 */
function decisionNanoseconds() {
  const decisions = 5_000_000;
  const tats = new Float64Array(1024);
  const rate = TIERS.general;
  let allowed = 0;
  const begun = performance.now();
  for (let i = 0; i < decisions; i += 1) {
    const decided = gcra(tats[i & 1023], i >> 4, rate);
    tats[i & 1023] = decided.tat;
    if (decided.allowed) allowed += 1;
  }
  const nanoseconds = (performance.now() - begun) * 1e6;
  if (allowed === 0 || allowed === decisions) throw new Error('every decision was the same');
  return nanoseconds / decisions;
}
