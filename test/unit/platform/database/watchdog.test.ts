import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startWatched } from '#platform/database/embedded-postgres/watchdog.js';
import { makeTemporaryDirectory, removeDirectory } from '../../../support/temporary-directory.js';

let socketDir: string;

beforeEach(async () => {
  socketDir = await makeTemporaryDirectory();
});
afterEach(() => removeDirectory(socketDir));

/** Runs a script under the watchdog until it is up, and asks for its end. */
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

it('a server that heeds the interrupt is not told to quit', async () => {
  const words = await stopOf(`process.on('SIGINT', () => process.exit(3))`);
  expect(words).toBe('up | exit status 3');
  expect(existsSync(socketDir)).toBe(false);
});

it('a server that heeds no interrupt is told to quit, and its socket’s directory goes all the same', async () => {
  const words = await stopOf(
    `process.on('SIGINT', () => {}); process.on('SIGQUIT', () => process.exit(7))`,
  );
  expect(words).toBe('up | exit status 7');
  expect(existsSync(socketDir)).toBe(false);
});
