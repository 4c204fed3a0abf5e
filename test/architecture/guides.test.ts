import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize, relative, resolve } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { blocksOf, GUIDES, type GuideBlock } from '../support/guide.js';
import { filesLike } from './language.js';

const ROOT = resolve(import.meta.dirname, '../..');
const pages = filesLike('docs/guides/**/*.md');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const blocks = pages.flatMap((path) => blocksOf(relative(GUIDES, join(ROOT, path)), read(path)));

/**
 * Finds the blocks of guides that a test file reads, each as `page name`. They are the arguments of
 * its calls of `guideBlock`.
 */
function blocksReadBy(source: string): Set<string> {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && node.expression.getText() === 'guideBlock') {
      const [page, name] = node.arguments;
      if (page && name && ts.isStringLiteral(page) && ts.isStringLiteral(name)) {
        found.add(`${page.text} ${name.text}`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('test.ts', source, ts.ScriptTarget.Latest, true));
  return found;
}

/**
 * Returns the fault of a block of a guide, or an empty list. A test must read the block, or its
 * section must say why no test can. Both together are a fault.
 */
function faultOf(block: GuideBlock, sourceOf: (test: string) => string | undefined): string[] {
  const where = `${block.page}:${block.line}`;
  if (block.test === undefined) {
    return block.isExcused ? [] : [`${where}: no test runs it, and its section does not say why`];
  }
  if (block.isExcused) return [`${where}: a test runs it, and its section says that none can`];
  const source = sourceOf(block.test);
  if (source === undefined) return [`${where}: there is no test ${block.test}`];
  const isRead = blocksReadBy(source).has(`${block.page} ${block.name}`);
  return isRead ? [] : [`${where}: the test ${block.test} does not read it`];
}

function sourceOfTest(test: string): string | undefined {
  const path = join(ROOT, `test/guides/${test}.test.ts`);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

describe('the guides', () => {
  it('every command is run by a test, or its section says in its first line why it cannot', () => {
    expect(blocks.length).toBeGreaterThan(20);
    expect(blocks.flatMap((block) => faultOf(block, sourceOfTest))).toEqual([]);
  });

  it('a block without a test, with an unknown test or with a test that ignores it is a fault', () => {
    const planted = [
      '# Title\n\nText.\n\n```sh\none\n```\n',
      '# Title\n\nNot run in CI: it needs the sun.\n\n```sh\nexcused\n```\n\n## Part\n\n```sh\nalso\n```\n',
      '# Title\n\n## First\n\nNot run in CI: no reason here.\n\n## Second\n\n```sh\ntwo\n```\n',
      '# Title\n\n```sh test=gone:x\nthree\n```\n',
      '# Title\n\n```sh test=here:read\nfour\n```\n\n```sh test=here:ignored\nfive\n```\n',
    ].map((text) => blocksOf('p.md', text));
    const source = (test: string) => (test === 'here' ? `guideBlock('p.md', 'read')` : undefined);
    expect(planted.map((page) => page.flatMap((block) => faultOf(block, source)))).toEqual([
      ['p.md:5: no test runs it, and its section does not say why'],
      [],
      ['p.md:9: no test runs it, and its section does not say why'],
      ['p.md:3: there is no test gone'],
      ['p.md:7: the test here does not read it'],
    ]);
  });

  it('no test replaces the address of the service, because production refuses other names', () => {
    const replaced = (source: string) =>
      [...source.matchAll(/(?:login\.example\.com[^'`]*['`]|PUBLIC_URL|HOST\}`)\]?: /g)].map(
        ([key]) => key,
      );
    const sources = filesLike('test/guides/*.test.ts').map(read);
    expect(sources.flatMap(replaced)).toEqual([]);
    expect(replaced("{ 'https://login.example.com': app.baseUrl }")).toHaveLength(1);
    expect(replaced('{ [PUBLIC_URL]: app.baseUrl }')).toHaveLength(1);
  });

  it('names each block once in its page', () => {
    const names = blocks.flatMap(({ page, name }) => (name === undefined ? [] : `${page} ${name}`));
    expect(new Set(names).size).toBe(names.length);
  });

  it('shows only images that exist', () => {
    const images = pages.flatMap((path) =>
      [...read(path).matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, image = '']) =>
        normalize(join(dirname(path), image)),
      ),
    );
    expect(images.filter((image) => !existsSync(join(ROOT, image)))).toEqual([]);
  });

  it('the index of each folder leads to its pages and to the index of each folder below it', () => {
    const unreached = pages
      .map((path) => relative('docs/guides', path))
      .filter((page) => page !== 'README.md')
      .filter((page) => {
        const index = basename(page) === 'README.md' ? dirname(dirname(page)) : dirname(page);
        const folder = existsSync(join(GUIDES, index, 'README.md')) ? index : '.';
        const link = relative(folder, page);
        return !readFileSync(join(GUIDES, folder, 'README.md'), 'utf8').includes(`](${link})`);
      });
    expect(unreached).toEqual([]);
  });
});
