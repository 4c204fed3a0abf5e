import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sourceFiles, type SourceFile } from './import-graph.js';

const FOLDER = 'src/features/oidc/';
const PATCHES = `${FOLDER}engine/library-patches.ts`;
/** The files that may import `oidc-provider`, as src/features/oidc/README.md says. */
const IMPORTERS = [
  PATCHES,
  `${FOLDER}engine/oidc-provider.service.ts`,
  `${FOLDER}protocol/library.ts`,
];

/**
 * The internal files of the library that we import, in the order of the imports. A third file needs
 * a reason.
 */
const DEEP = ["'oidc-provider/lib/helpers/weak_cache.js'", "'oidc-provider/lib/helpers/grants.js'"];

const files = sourceFiles('src').filter(({ path }) => path.startsWith(FOLDER));

/** Lists the files that import the library or one of its subpaths. */
function importersOf(of: readonly SourceFile[]): string[] {
  const isLibrary = (name: string) => /^oidc-provider(?:\/|$)/.test(name);
  return of.filter(({ imports }) => imports.some(isLibrary)).map(({ path }) => path);
}

/**
 * Matches code that depends on internals of the library: prototypes, replay detection, its context,
 * its console, its English messages.
 */
const INSIDE =
  /\.prototype\b|ReplayDetection|Provider\.ctx|\bconsole\b|oidc-provider\/lib|touched: true|is not allowed for this client/;

/** Lists the files with code that matches `INSIDE`. */
function patchersOf(of: readonly SourceFile[]): string[] {
  return of.filter(({ text }) => INSIDE.test(text)).map(({ path }) => path);
}

/**
 * Lists the `Upstream:` notes in comments that name neither an issue of the library nor the day of
 * a search that found none.
 */
function withoutUpstream(text: string): string[] {
  const words = text.replaceAll(/\s+(?:\* )?/g, ' ');
  return [...words.matchAll(/Upstream: .{0,60}/g)]
    .map(([entry]) => entry)
    .filter((entry) => !/^Upstream: (?:#\d+\b|searched \d{4}-\d\d-\d\d, none found)/.test(entry));
}

describe('oidc-provider', () => {
  const planted: SourceFile = {
    path: `${FOLDER}token/x.ts`,
    text: `Provider.ctx`,
    imports: ['oidc-provider/lib/helpers/grants.js'],
  };

  it('is imported by three files of the feature, which its README names', () => {
    expect(importersOf(files).toSorted()).toEqual(IMPORTERS);
    expect(importersOf([planted])).toEqual([planted.path]);
  });

  it('is patched in one file, where each patch names its reason, upstream issue and tests', () => {
    expect(patchersOf(files)).toEqual([PATCHES]);
    expect(patchersOf([planted])).toEqual([planted.path]);
    const text = files.find(({ path }) => path === PATCHES)?.text ?? '';
    const count = (word: RegExp) => [...text.matchAll(word)].length;
    expect(count(/Reason:\s/g)).toBeGreaterThanOrEqual(8);
    expect(count(/Tests:\s/g)).toBe(count(/Reason:\s/g));
    expect(count(/Upstream:\s/g)).toBe(count(/Reason:\s/g));
    expect(withoutUpstream(text)).toEqual([]);
    expect(withoutUpstream('Upstream: none known. Tests: x')).toEqual([
      'Upstream: none known. Tests: x',
    ]);
    expect(text.match(/'oidc-provider\/lib\/[^']+'/g)).toEqual(DEEP);
    const tests = [...text.matchAll(/\btest\/\S+\.test\.ts/g)].map(([path]) => path);
    expect(tests.filter((path) => !existsSync(path))).toEqual([]);
  });
});
