import { spawn, type StdioOptions } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { takeFromAgents } from '../agent/agents.js';
import { endOf } from '../child/signals.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { CliFailure, errorCode, STATUS } from '../program/failure.js';
import { SSH_FILES } from './certificate-cache.js';

/**
 * Returns the public key of the SSH key pair that this machine uses with one svc server. `folder`
 * holds the secrets for that server. If the folder has no key pair, this call makes one with
 * `ssh-keygen`. It never makes a pair in a security key, because that needs a PIN and a touch: only
 * `svc setup ssh --sk` does that. The caller must hold the lock of `folder`.
 *
 * @param isInSecurityKey true if `svc setup ssh --sk` was chosen for this server
 * @throws CliFailure if the pair in the security key is missing, or `ssh-keygen` makes no pair
 */
export async function publicKeyOf(
  folder: PrivateFolder,
  isInSecurityKey: boolean,
): Promise<string> {
  const stored = storedPublicKey(folder);
  if (stored !== undefined) return stored;
  if (isInSecurityKey) {
    throw new CliFailure('The SSH key is missing.', 'Run: svc setup ssh --sk');
  }
  await makeKeyPair(folder, ['-t', 'ed25519'], async () => {});
  return storedPublicKey(folder) ?? '';
}

/** Returns the public key of the stored key pair; undefined if a file of the pair is missing. */
export function storedPublicKey(folder: PrivateFolder): string | undefined {
  if (!existsSync(folder.file(SSH_FILES.identity))) return undefined;
  return folder.read(SSH_FILES.publicKey)?.trim() || undefined;
}

/**
 * Makes a key pair by `ssh-keygen`. If `accept` does not throw, the pair replaces the old one, and
 * the certificate of the old pair is removed. The files have mode 0600.
 *
 * @param options the kind of key; `ssh-keygen` asks on the terminal if it must
 * @param accept gets the folder of the new pair, `id` and `id.pub`; it throws if the pair cannot be
 *   used
 */
export async function makeKeyPair(
  folder: PrivateFolder,
  options: readonly string[],
  accept: (made: string) => Promise<void>,
): Promise<void> {
  const place = folder.file(SSH_FILES.folder);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  const made = mkdtempSync(join(place, 'new-'));
  try {
    await runKeygen([...options, '-q', '-N', '', '-C', 'svc', '-f', join(made, 'id')], made);
    await accept(made);
    takeFromAgents(folder);
    const { certificate, earlierCertificate, hostGroups, sets, hosts } = SSH_FILES;
    for (const file of [certificate, earlierCertificate, hostGroups, sets, hosts]) {
      folder.remove(file);
    }
    for (const name of ['id.pub', 'id']) {
      chmodSync(join(made, name), 0o600);
      renameSync(join(made, name), join(place, name));
    }
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/**
 * Runs `ssh-keygen`, which may ask for a PIN and wait for a touch. This process does not block
 * meanwhile, so that it goes on renewing its lock.
 */
async function runKeygen(args: readonly string[], cwd: string): Promise<void> {
  const options = { cwd, stdio: ['inherit', 2, 2] as StdioOptions };
  const end = await endOf(() => spawn('ssh-keygen', args, options)).catch((cause: unknown) => {
    if (errorCode(cause) === 'ENOENT') {
      throw new CliFailure('ssh-keygen is not installed.', 'Install the OpenSSH client.');
    }
    throw noKey(cause);
  });
  if (end.status !== 0) throw noKey();
}

function noKey(cause?: unknown): CliFailure {
  const whatToDo = 'Read the message of ssh-keygen above, and run it again.';
  const options = cause === undefined ? {} : { cause };
  return new CliFailure('ssh-keygen made no key.', whatToDo, STATUS.failed, options);
}
