import { fork } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';

const THIS_TREE = dirname(import.meta.dirname);

/**
 * Starts the server to be measured in a process of its own (bench/server-process.js), on the
 * embedded PostgreSQL with its durable defaults. By default, 32 people have enrolled a key and are
 * logged in.
 *
 * @param folder the folder for its data
 * @param environment variables that are added to its own settings, or replace them
 * @param tree the checkout whose `dist` and `bench/server-process.js` run; this checkout by default
 * @param people the number of people who have enrolled a key
 */
export async function startBenchServer(folder, environment = {}, tree = THIS_TREE, people = 32) {
  const args = [folder, String(people)];
  const { child, ...server } = await startProcess('server-process.js', args, environment, tree);
  return {
    ...server,
    /**
     * Returns the number of rows that a query finds. The parameter is what follows the word FROM in
     * SQL, such as a table with a condition.
     */
    async count(from) {
      child.send({ count: from });
      const [{ n }] = await once(child, 'message');
      return n;
    },
  };
}

/**
 * Starts the stand-in for AWS KMS in a process (bench/kms-process.js).
 * @param roundTrip the milliseconds by which it delays each answer
 */
export function startKms(roundTrip) {
  return startProcess('kms-process.js', [String(roundTrip)], {});
}

/**
 * Starts `scimmy-routers` by itself (bench/bare-scimmy-process.js).
 * @param users the number of users that it has in memory
 */
export function startBareScimmy(users) {
  return startProcess('bare-scimmy-process.js', [String(users)], {});
}

/** Starts Nest and Express with one route and nothing else (bench/bare-nest-process.js). */
export function startBareNest() {
  return startProcess('bare-nest-process.js', [], {});
}

/**
 * Starts `oidc-provider` by itself (bench/bare-oidc-process.js).
 *
 * @param clientsFile the metadata of its clients, a JSON list
 */
export function startBareOidcProvider(clientsFile) {
  return startProcess('bare-oidc-process.js', [clientsFile], {});
}

async function startProcess(script, args, environment, tree = THIS_TREE) {
  const child = fork(join(tree, 'bench', script), args, {
    cwd: tree,
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const [ready] = await Promise.race([
    once(child, 'message'),
    ended.then(() => {
      throw new Error(`${script} did not start`);
    }),
  ]);
  return {
    ...ready,
    child,
    pid: child.pid,
    async stop() {
      child.disconnect();
      await ended;
    },
  };
}
