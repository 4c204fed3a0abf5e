import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A real sshd on loopback, and a key pair of somebody who wants to log in there. */
export interface LocalSshd {
  readonly publicKeyLine: string;
  /** Gives it a certificate for the key, who may log in, whom it trusts and what is revoked, and starts it. */
  start(trust: {
    readonly authority: string;
    readonly principal: string;
    readonly certificate: string;
    readonly revoked: Uint8Array;
  }): Promise<void>;
  /** Puts a newer key revocation list in place, as the timer of docs/operations/ssh.md does. */
  refresh(revoked: Uint8Array): Promise<void>;
  /** Whether somebody with the certificate gets in. */
  letsIn(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Makes a key pair for a real sshd; undefined on a machine without OpenSSH. */
export async function prepareSshd(): Promise<LocalSshd | undefined> {
  const [sshd, ssh, keygen] = ['sshd', 'ssh', 'ssh-keygen'].map(findProgram);
  if (sshd === undefined || ssh === undefined || keygen === undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-sshd-'));
  const file = (name: string) => join(folder, name);
  for (const name of ['host', 'person']) {
    await run(keygen, ['-q', '-t', 'ed25519', '-N', '', '-f', file(name)]);
  }
  const port = await freePort();
  let child: ChildProcess | undefined;

  return {
    publicKeyLine: (await readFile(file('person.pub'), 'utf8')).trim(),
    async start({ authority, principal, certificate, revoked }) {
      await writeFile(file('person-cert.pub'), `${certificate}\n`);
      await writeFile(file('authorities'), `${authority}\n`);
      await writeFile(file('principals'), `${principal}\n`);
      await writeFile(file('revoked'), revoked);
      await writeFile(file('sshd_config'), configuration(port, file));
      if (userInfo().uid === 0) await mkdir('/run/sshd', { recursive: true }); // its chroot, demanded of root alone
      child = spawn(sshd, ['-D', '-e', '-f', file('sshd_config')], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      await listening(child);
    },
    refresh: (revoked) => writeFile(file('revoked'), revoked),
    letsIn: () =>
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
    `CertificateFile=${file('person-cert.pub')}`,
  ];
  const values = options.flatMap((option) => ['-o', option]);
  return ['-F', 'none', '-p', String(port), '-i', file('person'), ...values];
}

async function listening(child: ChildProcess): Promise<void> {
  if (!child.stderr) throw new Error('sshd was started without a log');
  const said: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    said.push(line);
    if (line.startsWith('Server listening')) {
      child.stderr.resume(); // whatever else it says
      return;
    }
  }
  throw new Error(`sshd did not start: ${said.join('; ')}`);
}

function findProgram(name: string): string | undefined {
  return SYSTEM_FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}

/** Where the system's programs are: sshd insists on its absolute path, and only platform/config reads the environment. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin', '/bin'];
