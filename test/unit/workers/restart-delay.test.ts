import { describe, expect, it } from 'vitest';
import { endsInARow, restartDelay } from '../../../src/workers/restart-delay.js';

describe('the restart of a worker', () => {
  it('waits twice as long after each end in a row, and 30 seconds at most', () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 8, 9, 100].map(restartDelay);
    expect(delays).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('begins with the shortest wait after a minute of service', () => {
    expect(endsInARow(0, 0)).toBe(1);
    expect(endsInARow(7, 59_999)).toBe(8);
    expect(endsInARow(7, 60_000)).toBe(1);
  });
});
