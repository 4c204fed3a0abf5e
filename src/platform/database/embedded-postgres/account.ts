import { execFile } from 'node:child_process';
import { chmod, lchown, readFile, readdir, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The user `nobody`: nearly every system has the entry for it that initdb asks for. */
const NOBODY = 65534;

/**
 * The user ids that a server of root's may have to itself: the first of these without an entry in /etc/passwd. Other
 * services run as `nobody` too, and could otherwise read the files of the cluster.
 */
const OWN_UIDS = { first: 61_700, last: 61_799 } as const;

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
 * Chooses who runs initdb, for a cluster that is to be made in `parent`. Root becomes the user `nobody` where that user
 * can reach both the directory and the program, and uses a user namespace otherwise.
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
 * Chooses a user id that nothing else has, for root's cluster, which initdb makes as the user `nobody`. A cluster that
 * another user made for itself keeps its owner: then the directory around it is that user's.
 *
 * @returns undefined where the cluster keeps its owner
 */
export async function ownAccountFor(
  cluster: string,
  current: Account,
  postgres: string,
): Promise<Account | undefined> {
  if (process.getuid?.() !== 0 || current.credentials.uid !== NOBODY) return undefined;
  const parent = dirname(cluster);
  const own = await unusedUid();
  if (own === undefined || (await stat(parent)).uid !== 0) return undefined;
  const account = asUser(own, own);
  return (await canRun(account, parent, postgres)) ? account : undefined;
}

/**
 * Gives a cluster, on which no server runs, to another account. PG_VERSION, which tells the owner, changes hands last: the
 * next start completes what a killed one began.
 */
export async function giveCluster(to: Account, cluster: string): Promise<void> {
  const mark = join(cluster, 'PG_VERSION');
  await giveDirectory(to, cluster, mark);
  await giveTo(to, mark);
}

/**
 * Gives a directory, and all in it but one path. The old owner may still run processes, so each directory is closed to them
 * before its names are read: none of these can become a link to somewhere else meanwhile.
 */
async function giveDirectory(to: Account, directory: string, butFor: string): Promise<void> {
  await giveTo(to, directory);
  await chmod(directory, 0o700);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await giveDirectory(to, path, butFor);
    else if (path !== butFor) await giveTo(to, path);
  }
}

async function unusedUid(): Promise<number | undefined> {
  const entries = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const used = new Set(entries.split('\n').map((line) => Number(line.split(':')[2])));
  for (let uid = OWN_UIDS.first; uid <= OWN_UIDS.last; uid += 1) if (!used.has(uid)) return uid;
  return undefined;
}

/**
 * Names this process's user as PostgreSQL sees it at the other end of the socket: for a server in a user namespace
 * everything outside of it is the one user it maps.
 *
 * @throws Error when the system has no name for the user, which `peer` authentication needs
 */
export function peerName({ prefix }: Account): string {
  if (prefix.length > 0) return 'nobody';
  try {
    return userInfo().username;
  } catch (cause) {
    throw new Error(
      `The user ${process.getuid?.()} has no name on this system, which the embedded PostgreSQL needs: add one to ` +
        '/etc/passwd, or set SVC_DATABASE_URL.',
      { cause },
    );
  }
}

/**
 * Finds who may run the cluster that exists: its owner.
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

/** Makes a file or directory the account's own. */
export async function giveTo({ credentials }: Account, path: string): Promise<void> {
  if ('uid' in credentials) await lchown(path, credentials.uid, credentials.gid);
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
