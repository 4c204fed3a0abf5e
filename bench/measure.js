import { startCpuTime } from './cpu-time.js';

/** Returns a percentile of some samples: the median for a share of 0.5, the p99 for 0.99. */
export function percentile(samples, share) {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/**
 * Lets several clients repeat a function at the same time, for a number of seconds.
 * @returns the milliseconds of each call
 */
export async function load(clients, seconds, act) {
  const latencies = [];
  const end = performance.now() + seconds * 1000;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < end) {
        const start = performance.now();
        await act(client);
        latencies.push(performance.now() - start);
      }
    }),
  );
  return latencies;
}

/**
 * Measures a load once: connects clients, lets them warm up, and counts the CPU time while all of
 * them repeat their requests.
 *
 * @param pid the process of the server
 * @param work `open` connects the clients and returns `[{ act, close }]`; with `sleeps`, this
 *   process may sleep between answers
 * @returns `{ acts, latencies, server, postgres }`: the number of all requests, including the
 *   warm-up, and the latencies and CPU seconds after the warm-up
 */
export async function measureTurn(
  pid,
  { open, sleeps = false },
  { seconds, warmUpSeconds = 0, postgres },
) {
  const clients = await open();
  const act = (client) => clients[client].act();
  const sleep = sleeps ? () => undefined : stayAwake();
  try {
    const warmUp = await load(clients.length, warmUpSeconds, act);
    const cpuTime = startCpuTime(pid, postgres);
    const latencies = await load(clients.length, seconds, act);
    return { acts: warmUp.length + latencies.length, latencies, ...cpuTime() };
  } finally {
    sleep();
    for (const client of clients) client.close();
  }
}

/**
 * Keeps this process from sleeping while it waits for answers, until the returned function is
 * called. A client that sleeps would distort a comparison: waking it costs the server CPU time, and
 * a slower server wakes it more often.
 */
export function stayAwake() {
  let isAwake = true;
  const again = () => isAwake && setImmediate(again);
  again();
  return () => {
    isAwake = false;
  };
}

/** Writes a table with aligned columns. Numbers are aligned to the right. */
export function table(rows) {
  const columns = Object.keys(rows[0]);
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i].length)));
  return cells
    .map((line) =>
      line
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
        .join('  '),
    )
    .join('\n');
}
