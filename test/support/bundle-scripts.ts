import { globSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

/**
 * The folder of the bundle. Its depth is that of `dist/bundle`, because bundled code finds files of
 * the project relative to its own folder.
 */
const BUNDLE = join(ROOT, 'dist/bundle-tests');

/** The files that go into the bundle. It is built again if one of them is newer. */
const SOURCES = [
  'src/**/*.ts',
  'packages/*/src/**/*.ts',
  'test/support/**/*.ts',
  'test/support/*-bundle.js',
  'scripts/*.js',
  'package-lock.json',
];

/**
 * Bundles the scripts that start a whole application, together with their packages. A process loads
 * the bundle in a quarter of the time. It does nothing if the bundle is newer than all its sources.
 */
export async function bundleScripts(): Promise<void> {
  const bundle = statSync(join(BUNDLE, 'replica.js'), { throwIfNoEntry: false });
  const times = globSync(SOURCES, { cwd: ROOT }).map((file) => statSync(join(ROOT, file)).mtimeMs);
  if (bundle !== undefined && bundle.mtimeMs > Math.max(...times)) return;
  const script = new URL('../../scripts/projects.js', import.meta.url).href;
  const projects = (await import(script)) as {
    bundleServer: (options: { folder: string; configuration: string }) => Promise<void>;
  };
  const configuration = join(ROOT, 'test/support/scripts-bundle.js');
  await projects.bundleServer({ folder: 'bundle-tests', configuration });
}

/**
 * Returns the path of a test/support script in the bundle; undefined if the bundle does not have
 * it.
 */
export function bundledScript(name: string): string | undefined {
  const file = join(BUNDLE, name.replace(/\.ts$/, '.js'));
  return statSync(file, { throwIfNoEntry: false }) ? file : undefined;
}
