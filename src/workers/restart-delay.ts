/**
 * The waits before a worker is started again, in milliseconds. A worker that served for
 * `STEADY_MS` counts as a new one.
 */
const FIRST_MS = 250;
const LONGEST_MS = 30_000;
const STEADY_MS = 60_000;

/**
 * Counts the ends of a worker that had not served for a minute before.
 *
 * @param ends the number of such ends before this one
 * @param servedMs the milliseconds for which the worker served
 */
export function endsInARow(ends: number, servedMs: number): number {
  return servedMs >= STEADY_MS ? 1 : ends + 1;
}

/**
 * Returns the milliseconds to wait before a worker is started again. The wait doubles with each end
 * in a row, so that a worker that always fails does not use up the machine.
 */
export function restartDelay(ends: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** (ends - 1));
}
