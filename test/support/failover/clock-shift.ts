import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, existsSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** The clock that a program sees. It may differ from the clock of the machine. */
export interface ShiftedClock {
  /** The environment variables that give a program this clock at its start. */
  readonly variables: Readonly<Record<string, string>>;
  /**
   * Sets how many seconds the clock of the running program is ahead of the machine's; a negative
   * number means behind.
   */
  step(seconds: number): void;
}

/**
 * Makes a clock for a program. The program loads a library that shifts its clock; it is compiled if
 * the folder does not have it yet.
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
      // Overwrites the bytes in place, because running programs have mapped this file into memory.
      const open = openSync(file, 'r+');
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
