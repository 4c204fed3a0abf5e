import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundleCommand } from '../support/bundle-command.js';
import { packageFolders, sourceFiles, type SourceFile } from './import-graph.js';

const ROOT = resolve(import.meta.dirname, '../..');
const HOOKS = new URL('../support/typescript-hooks.js', import.meta.url).href;

/** The part of a package.json that these tests read. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly type?: string;
  readonly license?: string;
  readonly description?: string;
  readonly files?: readonly string[];
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const manifestIn = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
const product = manifestIn('.');

/**
 * Lists the imports of a package that it must not have: files outside of its folder, and packages
 * that its manifest does not declare.
 */
function foreignImports(
  folder: string,
  manifest: Manifest,
  files: readonly SourceFile[],
): string[] {
  // A package with a program (`bin`) is bundled into one file that includes its development
  // dependencies. So these count as declared.
  const bundled = manifest.bin === undefined ? {} : manifest.devDependencies;
  const declared = new Set(Object.keys({ ...manifest.dependencies, ...bundled }));
  const names = new Map(
    packageFolders().map((name) => [name, manifestIn(`packages/${name}`).name]),
  );
  return files.flatMap(({ path, imports }) =>
    imports
      .filter((target) => {
        if (target.startsWith('node:') || target.startsWith(`${folder}/src/`)) return false;
        const own = /^packages\/([^/]+)\//.exec(target)?.[1];
        const name = own === undefined ? /^(?:@[^/]+\/)?[^/]+/.exec(target)?.[0] : names.get(own);
        return target.startsWith('src/') || !declared.has(name ?? '');
      })
      .map((target) => `${path} -> ${target}`),
  );
}

/**
 * Lists the packages that the code of an example imports, and that the manifest does not declare.
 */
function undeclaredIn(code: string, { name, dependencies, devDependencies }: Manifest): string[] {
  const declared = new Set([name, ...Object.keys({ ...dependencies, ...devDependencies })]);
  return [...code.matchAll(/from '((?:@[^/']+\/)?[^/']+)/g)]
    .map(([, imported = '']) => imported)
    .filter((imported) => !imported.startsWith('node:') && !declared.has(imported));
}

/**
 * Returns the first example of a page: its language, its code, and the output that the page shows
 * below it.
 */
function exampleOf(page: string): { language: string; code: string; output: string } {
  const [, language = '', code = '', output = ''] =
    /^```(sh|js)\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/m.exec(page) ?? [];
  return { language, code, output };
}

describe.each(packageFolders())('packages/%s', (name) => {
  const folder = `packages/${name}`;
  const manifest = manifestIn(folder);

  it('could be published as it is: the manifest is complete, and its sources exist', () => {
    expect(manifest).toMatchObject({
      name: expect.stringMatching(/^@svc\/[a-z-]+$/),
      version: product.version, // the product and all packages have one version
      type: 'module',
      license: 'Apache-2.0',
      description: expect.stringMatching(/\.$/),
    });
    expect(manifest.files).toContain('dist');
    for (const [subpath, target] of Object.entries(manifest.exports)) {
      if (typeof target === 'string') {
        expect(existsSync(join(ROOT, folder, target)), subpath).toBe(true);
        continue;
      }
      const { source = '' } = target;
      expect(existsSync(join(ROOT, folder, source)), source).toBe(true);
      const built = source.replace('./src/', './dist/').replace(/\.ts$/, '');
      expect(Object.entries(target)).toEqual([
        ['source', source],
        ['types', `${built}.d.ts`],
        ['default', `${built}.js`],
      ]);
    }
  });

  it('imports nothing of the server, and only packages that its manifest declares', () => {
    const files = sourceFiles(`${folder}/src`);
    expect(files.length).toBeGreaterThan(0);
    expect(foreignImports(folder, manifest, files)).toEqual([]);
    const planted = (target: string) => [
      { path: `${folder}/src/x.ts`, text: '', imports: [target] },
    ];
    for (const target of ['src/platform/text/y.ts', 'undeclared', 'packages/unknown/src/x.ts']) {
      expect(foreignImports(folder, manifest, planted(target)), target).toHaveLength(1);
    }
  });

  it('has tests of its own, which import nothing of the server', () => {
    const tests = globSync(`${folder}/test/**/*.test.ts`, { cwd: ROOT });
    expect(tests).not.toEqual([]);
    const ofServer = sourceFiles(`${folder}/test`).flatMap(({ path, imports }) =>
      imports.filter((target) => target.startsWith('src/')).map((target) => `${path} -> ${target}`),
    );
    expect(ofServer).toEqual([]);
  });

  beforeAll(bundleCommand);

  it('prints what its README shows', () => {
    const { language, code, output } = exampleOf(
      readFileSync(join(ROOT, folder, 'README.md'), 'utf8'),
    );
    expect(code).not.toBe('');
    expect(undeclaredIn(code, manifest)).toEqual([]);
    expect(undeclaredIn("import x from '@svc/gone/part';", manifest)).toEqual(['@svc/gone']);
    const home = mkdtempSync(join(tmpdir(), 'svc-example-'));
    const settings = {
      cwd: join(ROOT, folder),
      env: { PATH: process.env['PATH'], HOME: home },
      encoding: 'utf8' as const,
    };
    const node = ['--conditions=source', `--import=${HOOKS}`, '--input-type=module', '-e', code];
    const { stdout, stderr } =
      language === 'sh'
        ? spawnSync('/bin/sh', ['-c', code], settings)
        : spawnSync(process.execPath, node, settings);
    rmSync(home, { recursive: true });
    expect(stdout, stderr).toBe(output);
  });
});
