import { describe, expect, it } from 'vitest';
import { limitedLines } from '../../../src/platform/http/edge/limited-lines.js';

describe('log lines that any client can cause', () => {
  it('are limited to 20 at once and one a second, and the suppressed ones are counted', () => {
    let now = 1_000_000;
    const written: string[] = [];
    const tell = limitedLines(
      (line) => written.push(line),
      () => now,
    );
    for (let i = 0; i < 1000; i += 1) tell(`line ${i}`);
    expect(written).toEqual(Array.from({ length: 20 }, (_, i) => `line ${i}`));
    now += 1000;
    tell('later');
    tell('too soon');
    now += 1000;
    tell('later still');
    expect(written.slice(20)).toEqual([
      'later (and 980 untold before)',
      'later still (and 1 untold before)',
    ]);
    now += 60_000;
    tell('after a quiet minute');
    expect(written.at(-1)).toBe('after a quiet minute');
  });
});
