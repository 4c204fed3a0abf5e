import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startWatched } from '#platform/database/embedded-postgres/watchdog.js';
import { makeTemporaryDirectory, removeDirectory } from '../../../support/temporary-directory.js';

let socketDir: string;

beforeEach(async () => {
  socketDir = await makeTemporaryDirectory();
});
afterEach(() => removeDirectory(socketDir));

/** Runs a script under the watchdog, stops it when it is ready, and returns how it ended. */
async function stopOf(script: string): Promise<string> {
  const { promise: isUp, resolve } = Promise.withResolvers<string>();
  const server = startWatched(
    [process.execPath, '-e', `${script}; setInterval(() => {}, 1000); console.error('up')`],
    { account: { prefix: [], credentials: {} }, cwd: '/', socketDir, onLine: resolve, grace: 1 },
  );
  await isUp;
  server.stop();
  return server.ended;
}

it('does not send SIGQUIT to a server that stops on the interrupt', async () => {
  const words = await stopOf(`process.on('SIGINT', () => process.exit(3))`);
  expect(words).toBe('up | exit status 3');
  expect(existsSync(socketDir)).toBe(false);
});

it('sends SIGQUIT to a server that ignores the interrupt, and removes the socket’s directory', async () => {
  const words = await stopOf(
    `process.on('SIGINT', () => {}); process.on('SIGQUIT', () => process.exit(7))`,
  );
  expect(words).toBe('up | exit status 7');
  expect(existsSync(socketDir)).toBe(false);
});
