import { readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100; // sysconf(_SC_CLK_TCK), the same on every Linux

/** CPU seconds a process has used, all its threads, user and system (proc(5), /proc/[pid]/stat). */
export function cpuSecondsOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

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
 * Keeps this process from sleeping while it waits for answers, until the function it returns is called: a client that sleeps
 * has the server pay for waking it, and the more the slower the server is.
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
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column])))];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i].length)));
  return cells
    .map((line) =>
      line
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
        .join('  '),
    )
    .join('\n');
}
