import { globSync, statSync } from 'node:fs';
import { resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

/** The files from which the bundle of the `svc` command is made. */
const SOURCES = ['packages/*/src/**/*.ts', 'packages/svc/*.js*', 'packages/svc/release-keys'];

/**
 * Bundles the `svc` command from the sources, as `npm run build` does. It does nothing if the
 * bundle is newer than all sources.
 */
export async function bundleCommand(): Promise<void> {
  const bundle = statSync(resolve(ROOT, 'dist/svc.mjs'), { throwIfNoEntry: false });
  const times = globSync(SOURCES, { cwd: ROOT }).map(
    (file) => statSync(resolve(ROOT, file)).mtimeMs,
  );
  if (bundle !== undefined && bundle.mtimeMs > Math.max(...times)) return;
  const script = new URL('../../scripts/projects.js', import.meta.url).href;
  const projects = (await import(script)) as { bundleCommand: () => Promise<void> };
  await projects.bundleCommand();
}
