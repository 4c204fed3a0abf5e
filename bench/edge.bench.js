import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gcra } from '../dist/platform/gcra/gcra.js';
import { TIERS } from '../dist/platform/rate-limit/buckets/tiers.js';
import { cpuSecondsOf, load, percentile, stayAwake, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { startBareNest, startBenchServer } from './server.js';

const CLIENTS = 32;
const SECONDS = 5;
const WARM_UP_SECONDS = 2;
const ROUNDS = 2;

/**
 * What everything around a handler costs: `/health`, and a route that is limited and needs a session, beside a bare Nest in the
 * same run. All takes turns, twice, and the better turn of each counts, since the machine has other things to do.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder, {
    SVC_METRICS_BEARER_TOKEN: 'the token of a scraper',
  });
  const bare = await startBareNest();
  try {
    const bearer = (client) => ({ authorization: `Bearer ${server.tokens[client]}` });
    const contenders = [
      { what: 'bare Nest, GET /hello', pid: bare.pid, url: `${bare.baseUrl}/hello` },
      { what: 'GET /health', pid: server.pid, url: `${server.baseUrl}/health` },
      { what: 'GET /v1/keys', pid: server.pid, url: `${server.baseUrl}/v1/keys`, headers: bearer },
    ];
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const contender of contenders) {
        const measured = await measure(contender);
        if (measured.rate > (contender.best?.rate ?? 0)) contender.best = measured;
      }
    }
    const [{ best: peer }] = contenders;
    const rows = contenders.map(({ what, best }) => ({
      what,
      'per CPU-second': best.rate.toFixed(0),
      'of bare Nest': (best.rate / peer.rate).toFixed(2),
      'per second': best.perSecond.toFixed(0),
      'p50 ms': best.p50.toFixed(1),
      'p99 ms': best.p99.toFixed(1),
    }));
    process.stdout.write(
      `${table(rows)}\n\n` +
        `one decision of the limiter: ${decisionNanoseconds().toFixed(0)} ns\n` +
        `${CLIENTS} clients, the better of ${ROUNDS} turns of ${SECONDS} s; limits, metrics and the request log on; each request ` +
        `from an address of its own; the load never sleeps\naim: 0.6 of bare Nest on /health\n`,
    );
  } finally {
    await bare.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure({ pid, url, headers = () => ({}) }) {
  const clients = Array.from(
    { length: CLIENTS },
    (_, client) => new RawClient(url, { method: 'GET', headers: headers(client) }),
  );
  const ask = (client) => clients[client].send();
  const sleep = stayAwake();
  await load(CLIENTS, WARM_UP_SECONDS, ask);
  const cpu = cpuSecondsOf(pid);
  const latencies = await load(CLIENTS, SECONDS, ask);
  const used = cpuSecondsOf(pid) - cpu;
  sleep();
  for (const client of clients) client.close();
  return {
    rate: latencies.length / used,
    perSecond: latencies.length / SECONDS,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  };
}

/** The mean over many buckets in turn, some of which refuse. */
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
