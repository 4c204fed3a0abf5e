import { describe, expect, it } from 'vitest';
import { sourceFiles, type SourceFile } from './import-graph.js';

/** The hook by which the listeners stop, and then all background work at the same time. */
const LISTENERS = 'src/listeners.service.ts';

/**
 * Lists the files that stop work in a hook of Nest that comes before the end of the requests'
 * services. Nest calls these hooks of one module after the other, so that each could delay the
 * stop.
 */
function hooksOf(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path, text }) => path !== LISTENERS && /beforeApplicationShutdown/i.test(text))
    .map(({ path }) => path);
}

describe('the background work', () => {
  it('stops at the same time, and not in one hook after the other', () => {
    expect(hooksOf(sourceFiles('src'))).toEqual([]);
    const text = 'class Loop implements BeforeApplicationShutdown {}';
    const planted = { path: 'src/domain/x.service.ts', text, imports: [] };
    expect(hooksOf([planted])).toEqual(['src/domain/x.service.ts']);
  });
});
