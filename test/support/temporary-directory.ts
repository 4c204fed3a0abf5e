import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a directory for one test. Other users may reach files inside it. The embedded PostgreSQL
 * server needs that, because it runs as another user if root runs the tests.
 */
export async function makeTemporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-test-'));
  await chmod(directory, 0o711);
  return directory;
}

/** Removes a directory and its content. */
export async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 10 });
}
