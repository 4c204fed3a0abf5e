import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FOLDER_ORDER } from './folder-order.js';
import { productFiles, type SourceFile } from './import-graph.js';
import { builtClasses, exportedTypes, longFunctions, type BuiltClass } from './shape.js';

const ROOT = resolve(import.meta.dirname, '../..');
const files = productFiles();
const classes = files.flatMap(builtClasses);
const folders = [...new Set(files.map(({ path }) => dirname(path)))];
const planted = (text: string, path = 'src/domain/planted/x.ts'): SourceFile => ({
  path,
  text,
  imports: [],
});

/**
 * The libraries that only one file of ours may import, each with that file. Our own packages are
 * named by their source file. A comment in the importing file lists what it uses of the library.
 */
const TAMED: Readonly<Record<string, string>> = {
  '@aws-sdk/client-kms': 'src/platform/kms/aws-kms.ts',
  '@nestjs/config': 'src/platform/config/config.module.ts',
  typeorm: 'src/platform/database/statements/typeorm.ts',
  '@nestjs/throttler': 'src/platform/rate-limit/buckets/throttler.ts',
  'fido2-lib': 'src/domain/keys/authenticators/attestation/fido2-library.ts',
  undici: 'src/platform/outbound/undici.ts',
  'packages/scim-language/src/index.ts': 'src/features/scim/language/scim-language.ts',
};

/**
 * The injectable classes that have less than 50 lines and at most one caller, each with the reason
 * why it is still a class.
 */
const SMALL: Readonly<Record<string, string>> = {
  ConfigurationPoll: 'Nest starts and stops it with the application',
  SshKeyAttestations: 'its caller is a controller, which would have eight dependencies',
};

/** Returns the files that import a library or one of its subpaths. */
const importersOf = (library: string, of: readonly SourceFile[]) =>
  of
    .filter(({ imports }) =>
      imports.some((name) => name === library || name.startsWith(`${library}/`)),
    )
    .map(({ path }) => path);

/** Returns the names of types that more than one file exports, each with the files. */
function sharedTypes(of: readonly SourceFile[]): string[] {
  const places = Map.groupBy(
    of.flatMap((file) => exportedTypes(file).map((name) => ({ name, path: file.path }))),
    ({ name }) => name,
  );
  return [...places.values()]
    .filter((found) => found.length > 1)
    .map((found) => `${found[0]?.name}: ${found.map(({ path }) => path).join(', ')}`);
}

/** Reads the folders in the first column of the tables of a README. */
function listedFolders(readme: string): string[] {
  const cells = [...readme.matchAll(/^\|([^|]*)\|/gm)].map(([, cell = '']) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name));
}

describe('the shape of the source', () => {
  it('has at most 90 injectable classes, and no constructor takes more than 6 dependencies', () => {
    const injectables = classes.filter(({ decorator }) => decorator === 'Injectable');
    expect(injectables.length).toBeLessThanOrEqual(90);
    expect(injectables.length).toBeGreaterThan(30);
    const loaded = classes.filter(({ dependencies }) => dependencies > 6);
    expect(loaded.map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
    const text = `@Injectable() class X { constructor(a: A, b: B, c: C, d: D, e: E, f: F, g: G) {} }`;
    expect(builtClasses(planted(text))).toMatchObject([{ name: 'X', dependencies: 7 }]);
  });

  it('has no small injectable class with one caller, except for those named here', () => {
    const small = classes.filter(
      ({ decorator, lines }) => decorator === 'Injectable' && lines < 50,
    );
    const callersOf = ({ name, path }: BuiltClass) =>
      files.filter(
        (file) =>
          file.path !== path &&
          !file.path.endsWith('.module.ts') &&
          new RegExp(`\\b${name}\\b`).test(file.text),
      ).length;
    const alone = small.filter((built) => callersOf(built) <= 1).map(({ name }) => name);
    expect(alone.toSorted()).toEqual(Object.keys(SMALL).toSorted());
  });

  it('has at most 3 functions of more than 50 lines', () => {
    const long = files.flatMap((file) => longFunctions(file, 50));
    expect(long.slice(3)).toEqual([]);
    const text = `function x() {\n${'  y();\n'.repeat(49)}}`;
    expect(longFunctions(planted(text), 50)).toHaveLength(1);
    expect(longFunctions(planted(text), 51)).toEqual([]);
  });

  it('exports no name of a type twice', () => {
    expect(sharedTypes(files)).toEqual([]);
    const twice = [planted('export class A {}'), planted('export interface A {}', 'src/y.ts')];
    expect(sharedTypes(twice)).toEqual(['A: src/domain/planted/x.ts, src/y.ts']);
  });

  it('has a configuration of at most 1,200 lines', () => {
    const lines = files
      .filter(({ path }) => path.startsWith('src/platform/config/'))
      .reduce((sum, { text }) => sum + text.trimEnd().split('\n').length, 0);
    expect(lines).toBeLessThanOrEqual(1200);
    expect(lines).toBeGreaterThan(600);
  });

  it('has at most 12 files in a folder', () => {
    const filesIn = (folder: string) =>
      readdirSync(resolve(ROOT, folder), { withFileTypes: true })
        .filter(
          // The README of src only lists the layers, so it does not count.
          ({ name }) => folder !== 'src' || name !== 'README.md',
        )
        .filter((entry) => entry.isFile());
    const withAssets = [...folders, 'src/features/pages/static', 'src/features/pages/views'];
    const large = withAssets.filter((folder) => filesIn(folder).length > 12);
    expect(large).toEqual([]);
  });

  it('has a README of 3 to 14 lines in every folder of features, domain, platform and the command', () => {
    const layers = folders.filter((folder) =>
      /^(?:src\/(?:features|domain|platform)|packages\/svc\/src)\//.test(folder),
    );
    const faulty = layers.filter((folder) => {
      const path = resolve(ROOT, folder, 'README.md');
      if (!existsSync(path)) return true;
      const lines = readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line.trim() !== '');
      return lines.length < 3 || lines.length > 14;
    });
    expect(faulty).toEqual([]);
  });

  it('has a README in src, in each layer and in test', () => {
    const layers = ['src', 'src/domain', 'src/features', 'src/platform', 'test'];
    const named = (folder: string) => readFileSync(resolve(ROOT, folder, 'README.md'), 'utf8');
    for (const folder of layers) {
      const below = readdirSync(resolve(ROOT, folder), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name);
      const unnamed = below.filter((name) => !new RegExp(`\\b${name}\\b`).test(named(folder)));
      expect(unnamed, folder).toEqual([]);
    }
  });

  it('lists the folders of domain and platform in their READMEs in the order of folders', () => {
    for (const layer of ['src/domain', 'src/platform']) {
      const table = readFileSync(resolve(ROOT, layer, 'README.md'), 'utf8');
      const order = (FOLDER_ORDER[layer] ?? []).filter((folder) => !folder.includes('/'));
      expect(listedFolders(table), layer).toEqual(order);
    }
    expect(listedFolders('| `a`, `b` | `c` |\n| `d` | x |')).toEqual(['a', 'b', 'd']);
  });

  it('states in no README which folders a folder may use: the order of folders does', () => {
    const stating = folders
      .map((folder) => resolve(ROOT, folder, 'README.md'))
      .filter((path) => existsSync(path) && /\bmay use\b/.test(readFileSync(path, 'utf8')));
    expect(stating).toEqual([]);
  });

  it('writes audit events by one statement', () => {
    const writers = files.flatMap(({ path, text }) =>
      [...text.matchAll(/INSERT INTO audit_events\b/g)].map(() => path),
    );
    expect(writers).toEqual(['src/domain/audit/audit.repository.ts']);
  });

  it('imports each tamed library in one file', () => {
    for (const [library, file] of Object.entries(TAMED)) {
      expect(importersOf(library, files), library).toEqual([file]);
    }
    const two = { ...planted(''), imports: ['@nestjs/throttler'] };
    expect(importersOf('@nestjs/throttler', [two])).toEqual([two.path]);
  });
});
