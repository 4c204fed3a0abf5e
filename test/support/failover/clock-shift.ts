import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, existsSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** The clock of a program, which differs from the clock of the machine. */
export interface ShiftedClock {
  /** The variables with which a program starts that has this clock. */
  readonly variables: Readonly<Record<string, string>>;
  /** Moves the clock of the running program to so many seconds ahead; negative: behind. */
  step(seconds: number): void;
}

/**
 * Makes a clock for a program. Compiles the library that the program loads, unless the folder has
 * it.
 *
 * @param folder a folder that the user of the program can read
 * @param seconds how far the clock is ahead at first; negative: behind
 */
export function shiftedClock(folder: string, seconds = 0, name = 'clock'): ShiftedClock {
  const library = join(folder, 'clock-shift.so');
  const source = join(import.meta.dirname, 'clock-shift.c');
  if (!existsSync(library)) {
    execFileSync('cc', ['-O1', '-shared', '-fPIC', '-o', library, source, '-ldl']);
    chmodSync(library, 0o755);
  }
  const file = join(folder, `${name}.seconds`);
  writeFileSync(file, bytesOf(seconds), { mode: 0o644 });
  return {
    variables: { LD_PRELOAD: library, CLOCK_SHIFT_FILE: file },
    step: (to) => {
      const open = openSync(file, 'r+'); // a running program has mapped the file, so it must stay
      writeSync(open, bytesOf(to), 0, 8, 0);
      closeSync(open);
    },
  };
}

function bytesOf(seconds: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(seconds));
  return bytes;
}
