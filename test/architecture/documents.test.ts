import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { documentLines, filesLike, type Prose } from './language.js';

const ROOT = resolve(import.meta.dirname, '../..');
/** `npm run reference` writes this folder; a test of its own finds stale pages. */
const GENERATED = 'docs/reference/';
const WIDTH = 100;
const TERMS = 48;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const linesOf = (path: string) => documentLines(path, read(path));
const where = ({ path, line }: Prose) => `${path}:${line}`;
const documents = filesLike(
  '*.md',
  'docs/**/*.md',
  'packages/*/*.md',
  'packages/*/src/**/*.md',
  'src/**/*.md',
  'test/**/*.md',
).filter((path) => !path.startsWith(GENERATED));

/**
 * Keeps the lines that are wider than the page. Tables and lines without a space cannot be wrapped.
 */
function tooWide(lines: readonly Prose[]): Prose[] {
  return lines.filter(
    ({ text }) => text.length > WIDTH && !text.startsWith('|') && /\S\s\S/.test(text.slice(2)),
  );
}

/** Names a heading as a link does: lower case, hyphens, no punctuation. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(path: string): string[] {
  return linesOf(path).flatMap(({ text }) => {
    const heading = /^#+ (.*)$/.exec(text)?.[1];
    return heading === undefined ? [] : [anchorOf(heading)];
  });
}

/** Finds the relative links of a page that lead to no file or no heading. */
function deadLinks(path: string, lines: readonly Prose[]): string[] {
  const links = lines.flatMap(({ text }) => [...text.matchAll(/\]\(([^)\s]+)\)/g)]);
  return links
    .map(([, link = '']) => link)
    .filter((link) => !/^https?:/.test(link))
    .filter((link) => {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? path : normalize(join(dirname(path), file));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    });
}

/** Reads the terms of the glossary: the rows of its tables before the words of the code. */
function termsOf(glossary: string): { term: string; definedIn: string; meaning: string }[] {
  const [product = ''] = glossary.split('\n## Words of the code');
  return [...product.matchAll(/^\| +([^|]+?) +\| +([^|]+?) +\| +([^|]+?) +\|$/gm)]
    .map(([, term = '', definedIn = '', meaning = '']) => ({ term, definedIn, meaning }))
    .filter(({ term }) => term !== 'Term' && !term.startsWith('-'));
}

describe('the documents', () => {
  it('the README fits on 110 lines', () => {
    expect(read('README.md').split('\n').length - 1).toBeLessThanOrEqual(110);
  });

  it('lines wrap at 100 characters, tables and code excepted', () => {
    expect(documents.length).toBeGreaterThan(20);
    expect(documents.flatMap((path) => tooWide(linesOf(path))).map(where)).toEqual([]);
    const planted = documentLines('planted.md', `${'word '.repeat(21)}\n| ${'cell '.repeat(30)} |`);
    expect(tooWide(planted).map(({ line }) => line)).toEqual([1]);
  });

  it('links lead to a file and a heading that exist', () => {
    expect(documents.flatMap((path) => deadLinks(path, linesOf(path)))).toEqual([]);
    const text =
      '[a](README.md) [b](no.md) [c](#gone) [d](https://example.com) [e](README.md#gone)';
    const planted = deadLinks('CHANGELOG.md', documentLines('CHANGELOG.md', text));
    expect(planted).toEqual(['no.md', '#gone', 'README.md#gone']);
  });

  it('the glossary defines 48 terms, each once, with its origin and one sentence', () => {
    const terms = termsOf(read('docs/glossary.md'));
    expect(terms).toHaveLength(TERMS);
    expect(new Set(terms.map(({ term }) => term)).size).toBe(TERMS);
    for (const { term, definedIn, meaning } of terms) {
      expect(definedIn, term).not.toBe('');
      expect(meaning, term).toMatch(/^[^.]+(?:\.\w[^.]*)*\.$/);
    }
  });
});
