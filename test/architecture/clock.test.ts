import { describe, expect, it } from 'vitest';
import { productFiles, type SourceFile } from './import-graph.js';

const READS = /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\brandom(?:Bytes|FillSync|UUID)\b/;

const CLOCKS =
  /^(?:src\/platform\/clock\/|packages\/(?:svc\/src\/program|stand-ins\/src)\/clock\.ts$)/;

/**
 * Lists the files that read the system time or draw random bytes themselves. Only files that match
 * `CLOCKS` may do so.
 */
function readersOf(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path, text }) => !CLOCKS.test(path) && READS.test(text))
    .map(({ path }) => path);
}

describe('time and chance', () => {
  it('are read in platform/clock, and in one file of the command', () => {
    expect(readersOf(productFiles())).toEqual([]);
    const planted = { path: 'src/domain/x.ts', text: 'const now = Date.now();', imports: [] };
    expect(readersOf([planted])).toEqual(['src/domain/x.ts']);
  });
});
