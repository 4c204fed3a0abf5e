import { describe, expect, it } from 'vitest';
import { sourceFiles, type SourceFile } from './import-graph.js';

const READS = /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\brandom(?:Bytes|FillSync|UUID)\b/;

/** The files outside platform/clock that read the time or draw random bytes. */
function readersOf(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path, text }) => !path.startsWith('src/platform/clock/') && READS.test(text))
    .map(({ path }) => path);
}

describe('time and chance', () => {
  it('are read in platform/clock alone', () => {
    expect(readersOf(sourceFiles('src'))).toEqual([]);
    const planted = { path: 'src/domain/x.ts', text: 'const now = Date.now();', imports: [] };
    expect(readersOf([planted])).toEqual(['src/domain/x.ts']);
  });
});
