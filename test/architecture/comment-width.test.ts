import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commentsOf, countWords, filesLike, proseOf } from './language.js';

const ROOT = resolve(import.meta.dirname, '../..');
const WIDTH = 100;
const CODE = ['src', 'packages', 'test', 'bench', 'scripts'].map(
  (folder) => `${folder}/**/*.{ts,js}`,
);

/**
 * The largest number of "where" in 1,000 words of comments. The word is for places; "if" is for
 * conditions.
 */
const MOST_WHERE = 1;

/**
 * Lists the lines with a comment that are too wide, unless one word alone is too long for a line.
 */
function wideComments(path: string, text: string): string[] {
  const lines = text.split('\n');
  if (!lines.some(({ length }) => length > WIDTH)) return []; // most files need no parser
  return commentsOf(path, text).flatMap((comment) =>
    comment.text.split('\n').flatMap((part, index) => {
      const line = lines[comment.line - 1 + index] ?? '';
      const isOneWord = part.split(/\s+/).some((word) => word.length > WIDTH - 20);
      const isDirective = /oxlint-disable/.test(part);
      return line.length > WIDTH && !isOneWord && !isDirective
        ? [`${path}:${comment.line + index}`]
        : [];
    }),
  );
}

describe('comments', () => {
  const files = filesLike(...CODE).filter((path) => !/node_modules|\/dist\//.test(path));

  it(`wrap at ${WIDTH} columns, as documents do`, () => {
    expect(files.length).toBeGreaterThan(1_000);
    const wide = files.flatMap((path) =>
      wideComments(path, readFileSync(join(ROOT, path), 'utf8')),
    );
    expect(wide).toEqual([]);
  });

  it('are found if they are wider', () => {
    const planted = `const one = 1;\n// ${'wide '.repeat(25)}\nconst two = 2; /* ${'too '.repeat(30)} */\n`;
    expect(wideComments('planted.ts', planted)).toEqual(['planted.ts:2', 'planted.ts:3']);
    expect(wideComments('link.ts', `// https://example.com/${'a'.repeat(120)}\n`)).toEqual([]);
  });

  it('say "if" for a condition, and "where" for a place alone', () => {
    const prose = files
      .filter((path) => /^(?:src|packages)\//.test(path))
      .flatMap((path) => proseOf(path, commentsOf));
    const where = prose.reduce(
      (sum, { text }) => sum + (text.match(/\bwhere\b/gi)?.length ?? 0),
      0,
    );
    expect((1000 * where) / countWords(prose).words).toBeLessThanOrEqual(MOST_WHERE);
  });
});
