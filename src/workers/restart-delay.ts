/**
 * The shortest and the longest wait before a worker is started again, in milliseconds. After a
 * worker has served for `STEADY_MS`, the next wait is the shortest one.
 */
const FIRST_MS = 250;
const LONGEST_MS = 30_000;
const STEADY_MS = 60_000;

/**
 * Returns how many times in a row a worker has ended, this time included. If the worker served for
 * a minute before it ended, the count begins again at 1.
 *
 * @param ends how many times in a row the worker had ended before
 * @param servedMs the milliseconds for which the worker served; 0 if it never did
 */
export function endsInARow(ends: number, servedMs: number): number {
  return servedMs >= STEADY_MS ? 1 : ends + 1;
}

/**
 * Returns the milliseconds to wait before a worker is started again. The wait doubles each time
 * that the worker ends again, so that a worker that always fails does not use up the machine.
 */
export function restartDelay(ends: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** (ends - 1));
}
