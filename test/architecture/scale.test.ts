import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROJECTS, TestFiles } from '../support/projects/projects.js';
import { filesBelow } from './import-graph.js';

const ROOT = resolve(import.meta.dirname, '../..');
const files = new TestFiles(ROOT);
const inTest = PROJECTS.flatMap((project) => files.of(project));

describe('a test file', () => {
  it('runs in npm test, or in npm run test:scale alone, so that none is left out', () => {
    const all = filesBelow('test', /\.test\.ts$/).map(({ path }) => path);
    const inScale = files.withScale();
    const alone = files.fullScaleOnly();
    expect(all.length).toBeGreaterThan(300);
    expect(all.filter((file) => !inTest.includes(file) && !inScale.includes(file))).toEqual([]);
    expect(alone.filter((file) => inTest.includes(file))).toEqual([]);
    expect(alone.filter((file) => !inScale.includes(file))).toEqual([]);
  });

  it('that npm test leaves out is listed, beside a faster test that remains', () => {
    const readme = readFileSync(resolve(ROOT, 'test/README.md'), 'utf8');
    const rows = [...readme.matchAll(/^\| `(\S+\.test\.ts)` +\| `(\S+\.test\.ts)` +\|$/gm)];
    const listed = rows.map(([, file]) => `test/${file}`);
    expect(listed.toSorted()).toEqual(files.fullScaleOnly());
    const remaining = rows.map(([, , file]) => `test/${file}`);
    expect(remaining.filter((file) => !inTest.includes(file))).toEqual([]);
  });
});
