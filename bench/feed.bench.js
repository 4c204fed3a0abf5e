import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCpuTime } from './cpu-time.js';
import { table } from './measure.js';
import { EVENTS, fillPages } from './pages-data.js';
import { startBenchServer } from './server.js';

/**
 * The smallest accepted number of events for each second of CPU time. The CPU time is that of the
 * server and PostgreSQL together.
 */
const LEAST = 20_000;

/**
 * Reads 1,000,000 audit events in the order of the feed, as NDJSON over HTTP. If a response is cut
 * off, the next request begins after the cursor of its last line. The exit status is 1 if an event
 * is missing or comes twice, or if the bound is missed.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  try {
    const token = await fillPages(server.database);
    const cpuTime = startCpuTime(server.pid);
    const start = performance.now();
    const { ids, responses } = await drain(server.baseUrl, token);
    const seconds = (performance.now() - start) / 1000;
    const { server: own, postgres } = cpuTime();
    const rate = ids.length / (own + postgres);
    const isWhole = ids.length === EVENTS && new Set(ids).size === EVENTS;
    const row = {
      events: ids.length.toLocaleString('en-US'),
      responses,
      seconds: seconds.toFixed(1),
      'server s': own.toFixed(1),
      'PostgreSQL s': postgres.toFixed(1),
      'per CPU-second': rate.toFixed(0),
    };
    process.stdout.write(`${table([row])}\n\neach event once: ${isWhole}; bound: ${LEAST}\n`);
    if (!isWhole || rate < LEAST) process.exitCode = 1;
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Reads the whole feed. Returns the ids of all events in their order, and the number of responses.
 */
async function drain(baseUrl, token) {
  const ids = [];
  let after = '';
  for (let responses = 1; ; responses += 1) {
    const query = after === '' ? '' : `&after=${after}`;
    const before = ids.length;
    const response = await fetch(
      `${baseUrl}/api/v1/org/audit-events?order=asc&format=ndjson${query}`,
      {
        headers: { cookie: `svc_session=${token}` },
      },
    );
    if (response.status !== 200) throw new Error(`status ${response.status}`);
    try {
      for await (const line of linesOf(response.body)) {
        // Each line is a JSON object. Its first member is the id, with 36 characters, and its last
        // member is the cursor.
        ids.push(line.slice(7, 43));
        after = line.slice(line.lastIndexOf('"cursor":"') + 10, -2);
      }
    } catch {
      continue; // the response was cut off
    }
    if (ids.length === before || ids.length >= EVENTS) return { ids, responses };
  }
}

/** Splits a response into its lines. A line that is not complete at the end is left out. */
async function* linesOf(body) {
  let rest = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
