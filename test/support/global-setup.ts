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

/** Starts one real PostgreSQL for the whole run, without durability settings. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
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
