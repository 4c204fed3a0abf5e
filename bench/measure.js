import { startCpuTime } from './cpu-time.js';

/** The value below which a share of the sorted samples lies. */
export function percentile(samples, share) {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/**
 * Runs an act from so many clients at once, over and over, for so many seconds.
 *
 * @returns the milliseconds each act took
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
 * Measures one turn: connects clients, lets them warm up, and counts the CPU time while all of them
 * act.
 *
 * @param pid the process of the server
 * @param work `open` connects the clients, `[{ act, close }]`; `sleeps` lets this process sleep
 *   between answers
 * @returns `{ acts, latencies, server, postgres }`: all acts with those of the warm-up, and CPU
 *   seconds
 */
export async function measureTurn(pid, { open, sleeps = false }, { seconds, warmUpSeconds = 0 }) {
  const clients = await open();
  const act = (client) => clients[client].act();
  const sleep = sleeps ? () => undefined : stayAwake();
  try {
    const warmUp = await load(clients.length, warmUpSeconds, act);
    const cpuTime = startCpuTime(pid);
    const latencies = await load(clients.length, seconds, act);
    return { acts: warmUp.length + latencies.length, latencies, ...cpuTime() };
  } finally {
    sleep();
    for (const client of clients) client.close();
  }
}

/**
 * Keeps this process from sleeping while it waits for answers, until the function it returns is
 * called: a client that sleeps has the server pay for waking it, and the more the slower the server
 * is.
 */
export function stayAwake() {
  let isAwake = true;
  const again = () => isAwake && setImmediate(again);
  again();
  return () => {
    isAwake = false;
  };
}

/** A table with its columns lined up; numbers to the right. */
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
