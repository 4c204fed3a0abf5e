import { execFile } from 'node:child_process';
import { chmod, lchown, readFile, readdir, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * The user id 65534, under which initdb runs. initdb needs an entry in /etc/passwd for its user,
 * and nearly every system has one for this id.
 */
const OVERFLOW_UID = 65534;

/**
 * A range of user ids. If this process is root, the server runs under the first id of the range
 * that has no entry in /etc/passwd. It does not run as the user id 65534, because other services
 * use that id too and could read the files of the cluster.
 */
const OWN_UIDS = { first: 61_700, last: 61_799 } as const;

/**
 * The account of the operating system under which PostgreSQL runs. PostgreSQL refuses to run as
 * root.
 */
export interface Account {
  /** A command, such as `unshare`, that is put before the program; empty if none is needed. */
  readonly prefix: readonly string[];
  /** The user and group for `spawn`; an empty object keeps the current user. */
  readonly credentials: { readonly uid: number; readonly gid: number } | Record<string, never>;
}

/**
 * The environment of child processes. This process's environment, which contains secrets, is not
 * passed on.
 */
export const CHILD_ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' };

const CURRENT_USER: Account = { prefix: [], credentials: {} };

/**
 * The account by which a process of root runs a program in a user namespace, in which root appears
 * as the user id 65534. It is for directories that only root can reach.
 */
const ROOT_IN_NAMESPACE: Account = {
  prefix: ['unshare', '--user', `--map-user=${OVERFLOW_UID}`, `--map-group=${OVERFLOW_UID}`, '--'],
  credentials: {},
};

/**
 * Chooses the account that runs initdb for a new cluster in `parent`. Root runs it as the user id
 * 65534 if that user can reach the directory and the program, and otherwise in a user namespace.
 *
 * @throws Error if root can do neither
 */
export async function accountForNewCluster(parent: string, postgres: string): Promise<Account> {
  if (process.getuid?.() !== 0) return CURRENT_USER;
  for (const account of [asUser(OVERFLOW_UID, OVERFLOW_UID), ROOT_IN_NAMESPACE]) {
    if (await canRun(account, parent, postgres)) return account;
  }
  throw new Error(
    `PostgreSQL does not run as root, the user ${OVERFLOW_UID} cannot reach both ${parent} and ${postgres}, and ` +
      'user namespaces are not available here: set SVC_DATA_DIR to a directory that others may traverse, start as ' +
      'an ordinary user, or set SVC_DATABASE_URL.',
  );
}

/**
 * Chooses an unused user id for a cluster that initdb made as the user id 65534, which other
 * services may use too. It does so only if this process is root. A cluster of any other user keeps
 * its owner.
 *
 * @returns the account with that user id; undefined if the cluster keeps its owner
 */
export async function ownAccountFor(
  cluster: string,
  current: Account,
  postgres: string,
): Promise<Account | undefined> {
  if (process.getuid?.() !== 0 || current.credentials.uid !== OVERFLOW_UID) return undefined;
  const parent = dirname(cluster);
  const own = await unusedUid();
  if (own === undefined || (await stat(parent)).uid !== 0) return undefined;
  const account = asUser(own, own);
  return (await canRun(account, parent, postgres)) ? account : undefined;
}

/**
 * Changes the owner of a cluster while no server runs on it. The owner of the file PG_VERSION
 * counts as the owner of the cluster. The file is changed last, so that the next start repeats a
 * change that was interrupted.
 */
export async function giveCluster(to: Account, cluster: string): Promise<void> {
  const mark = join(cluster, 'PG_VERSION');
  await giveDirectory(to, cluster, mark);
  await giveTo(to, mark);
}

/**
 * Changes the owner of a directory and its contents except one path. Processes of the old owner may
 * still run. So each directory is closed to them before its names are read, because they could
 * replace a name by a symbolic link meanwhile.
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
 * Returns the name of this process's user for `peer` authentication: PostgreSQL asks the kernel for
 * the user at the other end of a socket. A server in a user namespace sees every user outside of it
 * as one and the same user.
 *
 * @throws Error if the system has no name for the user, which `peer` authentication needs
 */
export function peerName({ prefix }: Account): string {
  if (prefix.length > 0) return 'nobody'; // the name of the user id 65534 in the namespace
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
 * Returns the account that owns an existing cluster.
 *
 * @throws Error if this process is neither the owner nor root
 */
export async function accountOfCluster(cluster: string): Promise<Account> {
  const { uid, gid } = await stat(`${cluster}/PG_VERSION`);
  const self = process.getuid?.();
  if (self === 0) return uid === 0 ? ROOT_IN_NAMESPACE : asUser(uid, gid);
  if (self === uid) return CURRENT_USER;
  throw new Error(
    `${cluster} belongs to user ${uid}, and this is user ${self}: start as that user, or set SVC_DATA_DIR.`,
  );
}

/**
 * Changes the owner of a file or directory to the account; does nothing if programs run as the
 * current user. A symbolic link itself changes, not its target.
 */
export async function giveTo({ credentials }: Account, path: string): Promise<void> {
  if ('uid' in credentials) await lchown(path, credentials.uid, credentials.gid);
}

/** Returns the command that runs a program as the account. */
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
