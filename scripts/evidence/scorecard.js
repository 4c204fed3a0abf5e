import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sumOf, worstOf } from './test-results.js';

const PAGE = 'docs/security-scorecard.md';
const NAMED_TEST = /`((?:api|architecture|cli|conformance|guides|unit)\/[\w/-]+)`/g;

/**
 * Reads the items of docs/security-scorecard.md. Joins each item with the tests that it names, and
 * with the last results of these tests.
 *
 * @param {string} root the folder of the checkout
 * @param {import('./test-results.js').TestResults} results
 * @returns {{ number: number, item: string, status: string, held: string, state?: string, counts:
 *   Record<string, number>, files: object[] }[]} the state is undefined for an item without a test
 * @throws Error if the page has no items, or names a test that does not exist
 */
export function readScorecard(root, results) {
  const items = itemsOf(readFileSync(join(root, PAGE), 'utf8'));
  if (items.length === 0) throw new Error(`${PAGE} has no items`);
  const named = items.map((item) => {
    const names = [...new Set([...item.held.matchAll(NAMED_TEST)].map(([, name]) => name))];
    return { item, names: names.map((name) => ({ name, paths: results.filesOf(name) })) };
  });
  const missing = named.flatMap(({ item, names }) =>
    names
      .filter(({ paths }) => paths.length === 0)
      .map(({ name }) => `item ${item.number}: test/${name}.test.ts`),
  );
  if (missing.length > 0)
    throw new Error(`${PAGE} names tests that do not exist: ${missing.join(', ')}`);
  return named.map(({ item, names }) => {
    const files = names.flatMap(({ paths }) => paths.map((path) => results.of(path)));
    const counts = sumOf(files);
    return { ...item, state: files.length === 0 ? undefined : worstOf(counts), counts, files };
  });
}

function itemsOf(text) {
  return text
    .replaceAll(/\n +/g, ' ') // an item of the list is one line
    .split('\n')
    .flatMap((line) => {
      const [, number, item, status, held] =
        /^- \*\*(\d+)\*\* (.+?) — \*\*([^*]+)\*\*: (.+)$/.exec(line) ?? [];
      return number === undefined ? [] : [{ number: Number(number), item, status, held }];
    });
}
