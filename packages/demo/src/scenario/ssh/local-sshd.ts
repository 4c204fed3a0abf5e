import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '@svc/stand-ins/loopback-server';
import { findOpenSsh } from '@svc/stand-ins/open-ssh';
import { sshArguments } from '@svc/stand-ins/ssh-arguments';
import { startSshd, type SshdProcess } from '@svc/stand-ins/sshd-process';

const run = promisify(execFile);

/** A real sshd on loopback, and the key pair of a user who logs in there. */
export interface LocalSshd {
  readonly publicKeyLine: string;
  /**
   * Writes the certificate, the principal, the trusted authority and the revocation list, and
   * starts sshd.
   */
  start(trust: {
    readonly authority: string;
    readonly principal: string;
    readonly certificate: string;
    readonly revoked: Uint8Array;
  }): Promise<void>;
  /**
   * Replaces the key revocation list of sshd, as the timer of docs/operations/ssh.md does on a real
   * host.
   */
  refresh(revoked: Uint8Array): Promise<void>;
  /** Returns true if a login by `ssh` with the certificate succeeds. */
  acceptsLogin(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Generates key pairs for a host and a user; returns undefined on a machine without OpenSSH. */
export async function prepareSshd(): Promise<LocalSshd | undefined> {
  const programs = findOpenSsh();
  if ('missing' in programs) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-sshd-'));
  const file = (name: string) => join(folder, name);
  for (const name of ['host', 'user']) {
    await run(programs.keygen, ['-q', '-t', 'ed25519', '-N', '', '-f', file(name)]);
  }
  const port = await freePort(0);
  let sshd: SshdProcess | undefined;

  return {
    publicKeyLine: (await readFile(file('user.pub'), 'utf8')).trim(),
    async start({ authority, principal, certificate, revoked }) {
      await writeFile(file('user-cert.pub'), `${certificate}\n`);
      await writeFile(file('authorities'), `${authority}\n`);
      await writeFile(file('principals'), `${principal}\n`);
      await writeFile(file('revoked'), revoked);
      sshd = await startSshd(programs.sshd, { folder, port, command: 'true' });
    },
    refresh: (revoked) => writeFile(file('revoked'), revoked),
    acceptsLogin: () =>
      run(programs.ssh, [
        ...sshArguments({ port, identity: file('user'), certificate: file('user-cert.pub') }),
        `${userInfo().username}@127.0.0.1`,
        'true',
      ]).then(
        () => true,
        () => false,
      ),
    async stop() {
      await sshd?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
