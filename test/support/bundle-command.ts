import { execFile } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../..');

/** All that the bundle is made of. */
const SOURCES = ['src/**/*.ts', 'rolldown.config.js', 'package.json'];

/** Bundles the command from the sources, as `npm run build` does, unless the bundle is newer than all of them. */
export async function bundleCommand(): Promise<void> {
  const bundle = statSync(resolve(ROOT, 'dist/svc.mjs'), { throwIfNoEntry: false });
  const times = SOURCES.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).map(
    (file) => statSync(resolve(ROOT, file)).mtimeMs,
  );
  if (bundle !== undefined && bundle.mtimeMs > Math.max(...times)) return;
  const rolldown = resolve(ROOT, 'node_modules/rolldown/bin/cli.mjs');
  await promisify(execFile)(process.execPath, [rolldown, '-c'], { cwd: ROOT });
}
