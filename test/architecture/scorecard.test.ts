import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const text = readFileSync(new URL('../../docs/security-scorecard.md', import.meta.url), 'utf8');
const rows = text
  .replaceAll(/\n +/g, ' ') // joins the lines of a list item
  .split('\n')
  .flatMap((line) => {
    const found = /^- \*\*(\d+)\*\* (.+?) — \*\*([^*]+)\*\*: (.+)$/.exec(line);
    if (!found) return [];
    const [, number = '', item = '', status = '', held = ''] = found;
    return [{ number, item, status, held }];
  });
const testsIn = (held: string) =>
  [...held.matchAll(/`((?:api|unit|conformance|architecture)\/[\w/-]+)`/g)].map(([, n]) => n ?? '');

describe('docs/security-scorecard.md', () => {
  it('has 62 items, and its count of met items is right', () => {
    expect(rows.map(({ number }) => Number(number))).toEqual(
      Array.from({ length: 62 }, (_, index) => index + 1),
    );
    const met = rows.filter(({ status }) => status === 'met').length;
    expect(text).toContain(`**${met} met**`);
    expect(met).toBeGreaterThanOrEqual(50);
  });

  it('has the text of each item as its author wrote it', () => {
    const given = readFileSync(
      new URL('../vectors/security-scorecard.txt', import.meta.url),
      'utf8',
    );
    expect(rows.map(({ item }) => item)).toEqual(given.trimEnd().split('\n'));
  });

  it('names an existing test for every item that is met', () => {
    for (const { item, status, held } of rows) {
      if (status === 'met') expect(testsIn(held).length, item).toBeGreaterThan(0);
      for (const name of testsIn(held)) {
        const file = new URL(`../${name}.test.ts`, import.meta.url);
        const folder = new URL(`../${name}/`, import.meta.url);
        expect(existsSync(file) || existsSync(folder), name).toBe(true);
      }
    }
  });
});
