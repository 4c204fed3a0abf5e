import { execFile } from 'node:child_process';
import { chown, stat } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** `nobody`: nearly every system has an entry for it, which initdb asks for. */
const NOBODY = 65534;

/** Under whose rights the server runs: PostgreSQL refuses to be root. */
export interface Account {
  /** The command that goes before the program's own, if any. */
  readonly prefix: readonly string[];
  /** The user and group to change to, for `spawn`; none to stay who we are. */
  readonly credentials: { readonly uid: number; readonly gid: number } | Record<string, never>;
}

/** Secrets of ours are none of the server's business: nothing of this process's environment is passed on. */
export const CHILD_ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' };

const OURSELVES: Account = { prefix: [], credentials: {} };

/** Root's files stay root's, but the server sees itself as nobody: for directories that only root can reach. */
const ROOT_IN_DISGUISE: Account = {
  prefix: ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`, '--'],
  credentials: {},
};

/**
 * Chooses once, for a cluster that is to be made in `parent`. Root becomes nobody where nobody can reach both the
 * directory and the program, and else hides in a user namespace.
 *
 * @throws Error when root can do neither
 */
export async function accountForNewCluster(parent: string, postgres: string): Promise<Account> {
  if (process.getuid?.() !== 0) return OURSELVES;
  for (const account of [asUser(NOBODY, NOBODY), ROOT_IN_DISGUISE]) {
    if (await canRun(account, parent, postgres)) return account;
  }
  throw new Error(
    `PostgreSQL does not run as root, the user nobody (${NOBODY}) cannot reach both ${parent} and ${postgres}, and ` +
      'user namespaces are not available here: set SVC_DATA_DIR to a directory that others may traverse, start as ' +
      'an ordinary user, or set SVC_DATABASE_URL.',
  );
}

/**
 * Who may run the cluster that exists: its owner.
 *
 * @throws Error when that is not us and we are not root
 */
export async function accountOfCluster(cluster: string): Promise<Account> {
  const { uid, gid } = await stat(`${cluster}/PG_VERSION`);
  const self = process.getuid?.();
  if (self === 0) return uid === 0 ? ROOT_IN_DISGUISE : asUser(uid, gid);
  if (self === uid) return OURSELVES;
  throw new Error(
    `${cluster} belongs to user ${uid}, and this is user ${self}: start as that user, or set SVC_DATA_DIR.`,
  );
}

/** Makes a directory the account's own. */
export async function giveTo({ credentials }: Account, directory: string): Promise<void> {
  if ('uid' in credentials) await chown(directory, credentials.uid, credentials.gid);
}

/** A program with its arguments, as the account has to call it. */
export function commandOf({ prefix }: Account, program: string, args: readonly string[]): string[] {
  return [...prefix, program, ...args];
}

function asUser(uid: number, gid: number): Account {
  return { prefix: [], credentials: { uid, gid } };
}

async function canRun(account: Account, parent: string, postgres: string): Promise<boolean> {
  const [program = '', ...args] = commandOf(account, '/bin/sh', [
    '-c',
    'cd "$1" && exec "$2" --version',
    'sh',
    parent,
    postgres,
  ]);
  try {
    await run(program, args, { ...account.credentials, cwd: '/', env: CHILD_ENVIRONMENT });
    return true;
  } catch {
    return false;
  }
}
