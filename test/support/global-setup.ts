import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestProject } from 'vitest/node';
import { runScript } from './child-script.js';
import type { EmbeddedServerArgument } from './embedded-server.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';
import type { TestServer } from './test-server.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The PostgreSQL server of this run, and the migrated database that each test database copies. */
    testServer: TestServer & { readonly template: string };
  }
}

/** Builds the bundle of the command, and starts one real PostgreSQL for the whole run, without durability settings. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  bundleCommand();
  // The workers, which start later, have this variable too.
  process.env['TEST_TRAFFIC'] = mkdtempSync(join(tmpdir(), 'svc-traffic-'));
  const dataDir = await makeTemporaryDirectory();
  const settings = { max_connections: '300', fsync: 'off', full_page_writes: 'off' };
  const template = 'migrated';
  const argument: EmbeddedServerArgument = { dataDir, settings, template };
  const server = runScript<TestServer>('embedded-server.ts', argument);
  project.provide('testServer', { ...(await server.answer), template });
  return async () => {
    await server.finish();
    await removeDirectory(dataDir);
  };
}

/** Bundles the command from the sources, as `npm run build` does. */
function bundleCommand(): void {
  const root = resolve(import.meta.dirname, '../..');
  const rolldown = resolve(root, 'node_modules/rolldown/bin/cli.mjs');
  execFileSync(process.execPath, [rolldown, '-c'], { cwd: root, stdio: 'pipe' });
}
