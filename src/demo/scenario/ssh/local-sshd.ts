import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { freePort } from '../../loopback/loopback-server.js';

const run = promisify(execFile);

/** A real sshd on loopback, and the key pair of a user who logs in there. */
export interface LocalSshd {
  readonly publicKeyLine: string;
  /** Writes the certificate, the principal, the trusted authority and the revocation list, and starts sshd. */
  start(trust: {
    readonly authority: string;
    readonly principal: string;
    readonly certificate: string;
    readonly revoked: Uint8Array;
  }): Promise<void>;
  /** Replaces the key revocation list, as the timer of docs/operations/ssh.md does. */
  refresh(revoked: Uint8Array): Promise<void>;
  /** Tries a login with the certificate. */
  acceptsLogin(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Generates key pairs for a host and a user; returns undefined on a machine without OpenSSH. */
export async function prepareSshd(): Promise<LocalSshd | undefined> {
  const [sshd, ssh, keygen] = ['sshd', 'ssh', 'ssh-keygen'].map(findProgram);
  if (sshd === undefined || ssh === undefined || keygen === undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-sshd-'));
  const file = (name: string) => join(folder, name);
  for (const name of ['host', 'user']) {
    await run(keygen, ['-q', '-t', 'ed25519', '-N', '', '-f', file(name)]);
  }
  const port = await freePort(0);
  let child: ChildProcess | undefined;

  return {
    publicKeyLine: (await readFile(file('user.pub'), 'utf8')).trim(),
    async start({ authority, principal, certificate, revoked }) {
      await writeFile(file('user-cert.pub'), `${certificate}\n`);
      await writeFile(file('authorities'), `${authority}\n`);
      await writeFile(file('principals'), `${principal}\n`);
      await writeFile(file('revoked'), revoked);
      await writeFile(file('sshd_config'), configuration(port, file));
      if (userInfo().uid === 0) await mkdir('/run/sshd', { recursive: true }); // sshd started by root requires its chroot folder
      child = spawn(sshd, ['-D', '-e', '-f', file('sshd_config')], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      await listening(child);
    },
    refresh: (revoked) => writeFile(file('revoked'), revoked),
    acceptsLogin: () =>
      run(ssh, [...clientOptions(port, file), `${userInfo().username}@127.0.0.1`, 'true']).then(
        () => true,
        () => false,
      ),
    async stop() {
      if (child?.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

type FileIn = (name: string) => string;

function configuration(port: number, file: FileIn): string {
  return [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${file('host')}`,
    'PidFile none',
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'AuthorizedKeysFile none',
    'PermitRootLogin prohibit-password',
    'StrictModes no', // the folder lies under a world-writable one
    `TrustedUserCAKeys ${file('authorities')}`,
    `RevokedKeys ${file('revoked')}`,
    `AuthorizedPrincipalsFile ${file('principals')}`,
    '',
  ].join('\n');
}

function clientOptions(port: number, file: FileIn): string[] {
  const options = [
    'IdentitiesOnly=yes',
    'IdentityAgent=none',
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    `CertificateFile=${file('user-cert.pub')}`,
  ];
  const values = options.flatMap((option) => ['-o', option]);
  return ['-F', 'none', '-p', String(port), '-i', file('user'), ...values];
}

async function listening(child: ChildProcess): Promise<void> {
  if (!child.stderr) throw new Error('sshd was started without a log');
  const lines: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    lines.push(line);
    if (line.startsWith('Server listening')) {
      child.stderr.resume(); // discards later lines
      return;
    }
  }
  throw new Error(`sshd did not start: ${lines.join('; ')}`);
}

function findProgram(name: string): string | undefined {
  return SYSTEM_FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** The folders of system programs: sshd requires its absolute path, and only platform/config reads the environment. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin', '/bin'];
