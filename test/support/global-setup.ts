import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bundleCommand } from './bundle-command.js';
import { bundleScripts } from './bundle-scripts.js';
import { runScript } from './child-script.js';
import { buildDocuments } from './documents.js';
import { signingKeys } from './provider-environment.js';
import type { RunServerAnswer } from './run-server.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';
import type { TestServer } from './test-server.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /**
     * The PostgreSQL server of this run, and the migrated database that each test database copies.
     */
    testServer: TestServer & { readonly template: string };
  }
}

/**
 * The PostgreSQL server of this test run. The first vitest project starts it. `users` is the number
 * of projects that use it, and the last one stops it.
 */
interface SharedServer {
  readonly started: Promise<{
    readonly answer: RunServerAnswer;
    readonly stop: () => Promise<void>;
  }>;
  users: number;
}

const SHARED = Symbol.for('the PostgreSQL of this run');

/**
 * The global object is the only way to share the server, because each vitest project loads its own
 * copy of this module.
 */
const shared = globalThis as { [SHARED]?: SharedServer };

/**
 * Builds the command and the documents, and starts one PostgreSQL server for the whole run. The
 * server does not write its data safely to disk, because no test needs it after the run.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const own = (shared[SHARED] ??= { started: start(), users: 0 });
  own.users += 1;
  // The tests of the project `api` start no scripts.
  const scripts = project.name === 'api' ? undefined : bundleScripts();
  const [{ answer, stop }] = await Promise.all([own.started, scripts]);
  project.provide('testServer', answer);
  return async () => {
    own.users -= 1;
    if (own.users === 0) await stop();
  };
}

async function start(): SharedServer['started'] {
  // The workers start later, so that they inherit this variable.
  process.env['TEST_TRAFFIC'] = mkdtempSync(join(tmpdir(), 'svc-traffic-'));
  const built = Promise.all([bundleCommand(), buildDocuments()]);
  const dataDir = await makeTemporaryDirectory();
  const server = runScript<RunServerAnswer>('run-server.ts', { dataDir });
  signingKeys();
  const [answer] = await Promise.all([server.answer, built]);
  return {
    answer,
    stop: async () => {
      await server.finish();
      await removeDirectory(dataDir);
    },
  };
}
