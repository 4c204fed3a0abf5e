import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { documentsScript } from '../support/documents.js';
import { documentLines, filesLike, type Prose } from './language.js';

const ROOT = resolve(import.meta.dirname, '../..');
/**
 * The folder of the pages that `npm run reference` writes. Another test finds pages that are out of
 * date.
 */
const GENERATED = 'docs/reference/';
const WIDTH = 100;
const TERMS = 52;
/**
 * The largest width of a table row in characters, and the largest number of words on a page that
 * the service shows.
 */
const TABLE_WIDTH = 160;
const MOST_WORDS = 2500;
/** The pages with tables that may be wider than `TABLE_WIDTH`. */
const WIDE = ['docs/conformance.md'];

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

/** Keeps the rows of tables that are wider than `TABLE_WIDTH`. */
function tooWideRows(lines: readonly Prose[]): Prose[] {
  return lines.filter(({ text }) => text.startsWith('|') && text.length > TABLE_WIDTH);
}

/** Counts the words of a page, its code included. */
function wordsOf(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/**
 * Returns the anchor by which a link names a heading: lower case, hyphens for spaces, no
 * punctuation.
 */
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

/**
 * Reads the product's terms from the glossary: the list items before the heading "Words of the
 * code".
 */
function termsOf(glossary: string): { term: string; definedIn: string; meaning: string }[] {
  const [product = ''] = glossary.replaceAll(/\n +/g, ' ').split('\n## Words of the code');
  const items = product.matchAll(/^- \*\*([^*]+)\*\* \((.+?)\): (.+)$/gm);
  return [...items].map(([, term = '', definedIn = '', meaning = '']) => ({
    term,
    definedIn,
    meaning,
  }));
}

/**
 * Messages of other programs that the page of symptoms quotes, so that no source of ours has them.
 */
const FOREIGN = ['Permission denied (publickey).'];

/**
 * Returns the messages that begin the list items of a page and that no source contains. `…` on the
 * page stands for a varying text: in the sources it is a value in a template string.
 */
function unknownMessages(page: string, sources: string): string[] {
  const text = sources
    .replaceAll(/['`]\s*\+\s*['`]/g, '') // joins a text that is written over two lines
    .replaceAll(/\$\{[^}]*\}/g, '…')
    .replaceAll(/\s+/g, ' ');
  return [...page.matchAll(/^- `([^`]+)`/gm)]
    .map(([, message = '']) => message)
    .filter((message) => !FOREIGN.includes(message))
    .filter((message) => !message.split('…').every((part) => text.includes(part.trim())));
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

  it(`rows of tables have at most ${TABLE_WIDTH} characters`, () => {
    const narrow = documents.filter((path) => !WIDE.includes(path));
    expect(narrow.flatMap((path) => tooWideRows(linesOf(path))).map(where)).toEqual([]);
    const planted = documentLines('planted.md', `| ${'cell '.repeat(40)} |\n| a | b |`);
    expect(tooWideRows(planted).map(({ line }) => line)).toEqual([1]);
  });

  it(`pages of docs have at most ${MOST_WORDS} words`, () => {
    const pages = filesLike('docs/**/*.md');
    expect(pages.filter((path) => wordsOf(read(path)) > MOST_WORDS)).toEqual([]);
    expect(wordsOf('# Two words\n\n| — | --- |\n')).toBe(2);
  });

  it('the map lists every page once, and the menu of the service is the map', async () => {
    const { pages, menu } = (await documentsScript()).renderDocuments();
    const linked = menu.flatMap(({ links }) => links.map(({ href }) => href));
    expect(linked.toSorted()).toEqual(pages.map(({ address }) => address).toSorted());
  });

  it('rendered links lead to a page, a heading, a file or a source that exists', async () => {
    const { pages } = (await documentsScript()).renderDocuments();
    const headings = new Map(
      pages.map(({ path, headings: all }) => [path, all.map(({ id }) => id)]),
    );
    const dead = pages.flatMap(({ path, targets }) =>
      targets
        .filter(({ page, anchor, source }) => {
          if (source !== undefined) return !existsSync(join(ROOT, source));
          return (
            page !== undefined && anchor !== undefined && !headings.get(page)?.includes(anchor)
          );
        })
        .map(({ page, anchor, source }) => `${path}: ${source ?? `${page}#${anchor}`}`),
    );
    expect(dead).toEqual([]);
    for (const { path, html } of pages) {
      expect(html, path).not.toMatch(/<(?:script|style|iframe|form)|\son\w+=|href="[^"]*\.md/);
      expect(html, path).not.toMatch(/href="(?!#|https?:\/\/|\/docs)/);
    }
  });

  it('the messages of the page of symptoms are those of the service and of svc, to the letter', () => {
    const sources = filesLike('src/**/*.{ts,js,eta}', 'packages/svc/src/**/*.ts')
      .map(read)
      .join('');
    const page = read('docs/troubleshooting.md');
    expect(page.match(/^- `/gm)?.length).toBeGreaterThan(50);
    expect(unknownMessages(page, sources)).toEqual([]);
    const planted = '- `Wait … s.`: x\n- `Wait for ever.`: y\n';
    expect(unknownMessages(planted, "`Wait ${n} ` +\n  's.'")).toEqual(['Wait for ever.']);
  });

  it('the glossary defines 52 terms, each once, with its origin and one sentence', () => {
    const terms = termsOf(read('docs/glossary.md'));
    expect(terms).toHaveLength(TERMS);
    expect(new Set(terms.map(({ term }) => term)).size).toBe(TERMS);
    for (const { term, definedIn, meaning } of terms) {
      expect(definedIn, term).not.toBe('');
      expect(meaning, term).toMatch(/^[^.]+(?:\.\w[^.]*)*\.$/);
    }
  });
});
