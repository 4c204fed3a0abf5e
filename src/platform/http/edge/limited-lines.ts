import { gcra, type Rate } from '#platform/gcra/gcra.js';

/** As many lines at once as one looks at, then one a second. */
const RATE: Rate = { burst: 20, interval: 1000 };

/**
 * Writes lines that anybody can cause, at a rate: they must not drown the others of their target. The next line says how
 * many went untold.
 *
 * @param now of a clock that never goes back, in whole milliseconds
 */
export function limitedLines(
  write: (line: string) => void,
  now = () => Math.floor(performance.now()),
): (line: string) => void {
  let tat = 0;
  let untold = 0;
  return (line) => {
    const decision = gcra(tat, now(), RATE);
    tat = decision.tat;
    if (!decision.allowed) {
      untold += 1;
      return;
    }
    write(untold === 0 ? line : `${line} (and ${untold} untold before)`);
    untold = 0;
  };
}
