import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/**
 * Lists the source files that do not exist, although a benchmark imports their built form from
 * `dist`.
 */
function withoutSource(text: string): string[] {
  return [...text.matchAll(/from '\.\.\/dist\/([^']+)\.js'/g)]
    .map(([, path]) => `src/${path}.ts`)
    .filter((path) => !existsSync(path));
}

describe('the benchmarks', () => {
  it('import only what the build makes', () => {
    const files = readdirSync('bench').filter((file) => file.endsWith('.js'));
    const gone = files.flatMap((file) =>
      withoutSource(readFileSync(`bench/${file}`, 'utf8')).map((path) => `${file} -> ${path}`),
    );
    expect(gone).toEqual([]);
  });

  it('are all in the list of commands of CONTRIBUTING.md', () => {
    const files = readdirSync('bench').flatMap((file) => /^(.+)\.bench\.js$/.exec(file)?.[1] ?? []);
    const text = readFileSync('CONTRIBUTING.md', 'utf8');
    const listed = [...text.matchAll(/^- `npm run bench -- (\w+)/gm)].map(([, name]) => name);
    expect(listed.toSorted()).toEqual(files.toSorted());
  });

  it('are seen when they import a file that was moved', () => {
    const planted = "import { gone } from '../dist/platform/gone.js';";
    expect(withoutSource(planted)).toEqual(['src/platform/gone.ts']);
  });
});
