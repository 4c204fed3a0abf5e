import { systemClock } from '#platform/clock/clock.js';
import { gcra, type Rate } from '#platform/gcra/gcra.js';

/** The rate of log lines that any client can cause: 20 at once, then one a second. */
const RATE: Rate = { burst: 20, interval: 1000 };

/**
 * Limits the rate of log lines that any client can cause, so that other lines can still be found.
 * The first line after omitted lines says how many were omitted.
 *
 * @param now reads a clock that never goes backwards, in whole milliseconds
 */
export function limitedLines(
  write: (line: string) => void,
  now = () => Math.floor(systemClock.monotonic()),
): (line: string) => void {
  let tat = 0;
  let omitted = 0;
  return (line) => {
    const decision = gcra(tat, now(), RATE);
    tat = decision.tat;
    if (!decision.allowed) {
      omitted += 1;
      return;
    }
    write(omitted === 0 ? line : `${line} (and ${omitted} untold before)`);
    omitted = 0;
  };
}
