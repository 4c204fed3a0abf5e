import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * Starts the server to be measured in a process of its own (bench/server-process.js), on the embedded PostgreSQL with its
 * durable defaults, with 32 people who have enrolled a key and are logged in.
 *
 * @param folder where it keeps its data
 * @param environment variables over its own
 */
export async function startBenchServer(folder, environment = {}) {
  const child = fork(fileURLToPath(new URL('server-process.js', import.meta.url)), [folder], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const [ready] = await Promise.race([
    once(child, 'message'),
    ended.then(() => {
      throw new Error('the server to be measured did not start');
    }),
  ]);
  return {
    ...ready,
    pid: child.pid,
    /** How many rows a `FROM …` has. */
    async count(from) {
      child.send({ count: from });
      const [{ n }] = await once(child, 'message');
      return n;
    },
    async stop() {
      child.disconnect();
      await ended;
    },
  };
}
