import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Compiles, into a folder, the library that shifts the clock of a program.
 *
 * @param seconds how far the clock is ahead; negative: behind
 * @returns the variables by which a program loads the library
 */
export function shiftedClock(folder: string, seconds: number): Record<string, string> {
  const library = join(folder, 'clock-shift.so');
  const source = join(import.meta.dirname, 'clock-shift.c');
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl']);
  chmodSync(library, 0o755);
  return { LD_PRELOAD: library, CLOCK_SHIFT_SECONDS: String(seconds) };
}
