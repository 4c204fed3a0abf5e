import type { TestProject } from 'vitest/node';
import setup from './global-setup.js';
import { startPgBouncer } from './pgbouncer.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The port of the PgBouncer in this vitest project; undefined if it has none. */
    pooler: number | undefined;
  }
}

/** Starts the PostgreSQL of the tests, and a PgBouncer in transaction mode in front of it. */
export default async function setupPooled(project: TestProject): Promise<() => Promise<void>> {
  const stop = await setup(project);
  const parts = new AsyncDisposableStack();
  const { port } = await startPgBouncer(parts, project.getProvidedContext().testServer);
  project.provide('pooler', port);
  return async () => {
    await parts.disposeAsync();
    await stop();
  };
}
