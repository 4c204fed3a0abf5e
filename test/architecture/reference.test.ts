import 'reflect-metadata';
import { readFileSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { referencePages } from '../../src/reference/reference-pages.js';

const FOLDER = resolve(import.meta.dirname, '../../docs/reference');

describe('docs/reference', () => {
  it('is as `npm run reference` writes it, and names every route and variable', async () => {
    const pages = await referencePages();
    expect(readdirSync(FOLDER).toSorted()).toEqual(Object.keys(pages).toSorted());
    for (const [name, text] of Object.entries(pages)) {
      expect(readFileSync(resolve(FOLDER, name), 'utf8'), `${name}: npm run reference`).toBe(text);
      expect(text).not.toMatch(/: *\n(?!\s)|: \.|\(\)/); // a row without a value
    }
  });
});
