import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The programs of OpenSSH by their absolute paths. */
export interface OpenSsh {
  readonly sshd: string;
  readonly ssh: string;
  readonly keygen: string;
}

/**
 * The folders in which the programs of OpenSSH are searched. `PATH` is not used, since this package
 * reads no environment variables. `sshd` must be started by its absolute path, because it executes
 * itself again for each connection.
 */
const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin', '/bin'];

/** Finds the programs of OpenSSH, or returns the names of those that this machine lacks. */
export function findOpenSsh(): OpenSsh | { readonly missing: readonly string[] } {
  const [sshd, ssh, keygen] = ['sshd', 'ssh', 'ssh-keygen'].map(find);
  if (sshd !== undefined && ssh !== undefined && keygen !== undefined) return { sshd, ssh, keygen };
  return { missing: ['sshd', 'ssh', 'ssh-keygen'].filter((name) => find(name) === undefined) };
}

function find(name: string): string | undefined {
  return SYSTEM_FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path));
}
