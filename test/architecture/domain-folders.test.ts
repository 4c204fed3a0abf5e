import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { circlesOf, FOLDER_ORDER } from './folder-order.js';
import { sourceFiles } from './import-graph.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** The folders of the domain, the lowest first. */
const FOLDERS = [
  'audit',
  'access',
  'access-revocation',
  'organizations',
  'providers',
  'directory',
  'oauth',
  'sessions',
  'keys',
  'sign-in',
  'ssh',
  'account',
  'github',
  'aws',
  'admin',
];

/** The folder of `src/domain` that a file is in; undefined for a file of another layer. */
const folderOf = (path: string) => /^src\/domain\/([^/]+)\//.exec(path)?.[1];

/**
 * Returns a pair of folders, the importing and the imported one, for each import between two
 * folders of the domain.
 */
function importsBetween(): [string, string][] {
  return sourceFiles('src/domain').flatMap(({ path, imports }) =>
    imports.flatMap((target): [string, string][] => {
      const [from, to] = [folderOf(path), folderOf(target)];
      return from === undefined || to === undefined || from === to ? [] : [[from, to]];
    }),
  );
}

describe('the folders of the domain', () => {
  it('are fifteen, in one order', () => {
    const listed = (FOLDER_ORDER['src/domain'] ?? []).map((folder) => folder.split('/')[0]);
    // Consecutive equal names count once. A folder whose parts are not listed one after another
    // would therefore occur twice, and the comparison would fail.
    expect(listed.filter((folder, index) => folder !== listed[index - 1])).toEqual(FOLDERS);
    const used = new Set(sourceFiles('src/domain').map(({ path }) => folderOf(path)));
    expect([...used].toSorted()).toEqual(FOLDERS.toSorted());
  });

  it('have one Nest module and one README each', () => {
    const modules = sourceFiles('src/domain')
      .map(({ path }) => path)
      .filter((path) => path.endsWith('.module.ts'));
    const expected = FOLDERS.map((folder) => `src/domain/${folder}/${folder}.module.ts`);
    expect(modules.toSorted()).toEqual(expected.toSorted());
    const missing = FOLDERS.filter(
      (folder) => !existsSync(`${ROOT}/src/domain/${folder}/README.md`),
    );
    expect(missing).toEqual([]);
  });

  it('import their own files by relative paths', () => {
    const byAlias = sourceFiles('src/domain').filter(({ path, text }) =>
      text.includes(`'#domain/${folderOf(path)}/`),
    );
    expect(byAlias.map(({ path }) => path)).toEqual([]);
  });

  it('import each other in no circle', () => {
    const arrows = new Map<string, Set<string>>(FOLDERS.map((folder) => [folder, new Set()]));
    for (const [from, to] of importsBetween()) arrows.get(from)?.add(to);
    expect(circlesOf(arrows)).toEqual([]);
  });

  it('have no folder from which more than 40 % of the imports between them start', () => {
    const imports = importsBetween();
    const share = (folder: string) =>
      imports.filter(([from]) => from === folder).length / imports.length;
    expect(imports.length).toBeGreaterThan(300);
    expect(FOLDERS.filter((folder) => share(folder) > 0.4)).toEqual([]);
  });
});
