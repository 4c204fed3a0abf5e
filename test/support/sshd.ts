import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.js';
import { findProgram } from './programs.js';

/** The programs that {@link startSshd} needs. */
export const SSHD_PROGRAMS = ['sshd', 'ssh', 'ssh-keygen'] as const;

/** The configuration of which certificates and principals the server accepts. */
export interface SshdOptions {
  /** The lines of `TrustedUserCAKeys`: authorities whose certificates the server accepts. */
  readonly authorities: readonly string[];
  /**
   * The lines of `AuthorizedPrincipalsFile`: principals that may log in to the account of the
   * tests.
   */
  readonly principals: readonly string[];
  /** Further lines of `sshd_config`, such as `RevokedKeys /path`. */
  readonly config?: readonly string[];
}

/** The result of a login. */
export interface LoginResult {
  readonly accepted: boolean;
  /**
   * The output of the client, and the server's log lines of this connection. Failed tests show it.
   */
  readonly log: string;
}

/** A running `sshd` on loopback. */
export interface Sshd {
  /**
   * A folder that only this user can read, for the keys and certificates of a test. {@link
   * Sshd.stop} deletes it.
   */
  readonly folder: string;
  readonly port: number;
  /** The lines of the server's log so far. */
  readonly lines: readonly string[];
  /**
   * Runs `true` over SSH. It offers a private key, and one or more certificates if they are given.
   * `environment` has further variables for the client.
   */
  login(
    privateKeyFile: string,
    certificateFile?: string | readonly string[],
    environment?: Readonly<Record<string, string>>,
  ): Promise<LoginResult>;
  stop(): Promise<void>;
}

/** Starts `sshd` and returns when it listens. The caller must stop it. */
export async function startSshd(options: SshdOptions): Promise<Sshd> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sshd-'));
  const file = (name: string, lines: readonly string[]): string => {
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
    return join(folder, name);
  };
  const hostKey = join(folder, 'host_key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', hostKey]);
  const port = await freePort();
  const config = file('sshd_config', [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${hostKey}`,
    'PidFile none',
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'AuthorizedKeysFile none',
    'PermitRootLogin prohibit-password',
    // sshd would refuse the files, because everyone can write to the parent folder
    'StrictModes no',
    'LogLevel VERBOSE',
    `TrustedUserCAKeys ${file('authorities', options.authorities)}`,
    `AuthorizedPrincipalsFile ${file('principals', options.principals)}`,
    ...(options.config ?? []),
  ]);
  return runSshd({ folder, port, config });
}

/**
 * The setting of sshd that prevents bash from reading `~/.bashrc`. With this variable, bash
 * believes that it runs inside another shell. The file may be slow, or write to the output.
 */
const NO_BASHRC = 'SetEnv=SHLVL=1';

/** The files of a server, and its port. */
interface SshdFiles {
  /** The folder of the server. Stopping the server deletes it. */
  readonly folder: string;
  readonly port: number;
  /** The path of the sshd_config file, which must set the port. */
  readonly config: string;
}

/**
 * Starts `sshd` with a configuration that the test wrote, and returns when it listens. The caller
 * must stop it.
 */
export async function runSshd({ folder, port, config }: SshdFiles): Promise<Sshd> {
  // As root, sshd refuses to start without this folder, which it uses for chroot.
  if (userInfo().uid === 0) mkdirSync('/run/sshd', { recursive: true });
  const program = findProgram('sshd'); // sshd refuses a relative path
  if (program === undefined) throw new Error('sshd is not installed');
  const args = ['-D', '-e', '-f', config, '-o', NO_BASHRC];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const lines: string[] = [];
  await listening(child, lines);

  return {
    folder,
    port,
    lines,
    async login(privateKeyFile, certificateFile, environment = {}) {
      const before = lines.length;
      const result = await runSsh(port, privateKeyFile, certificateFile, environment);
      await endOf(lines, before);
      return {
        accepted: result.status === 0,
        log: [result.said, ...lines.slice(before)].join('\n'),
      };
    },
    async stop() {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.kill('SIGTERM')) await gone;
      rmSync(folder, { recursive: true });
    },
  };
}

/**
 * Waits up to 10 seconds until the server has logged the end of the connection. The client may end
 * before that.
 */
async function endOf(lines: readonly string[], before: number): Promise<void> {
  const isEnd = (line: string) =>
    /^(?:Connection (?:closed|reset) by|Disconnected from|Disconnecting) /.test(line);
  const deadline = performance.now() + 10_000;
  while (!lines.slice(before).some(isEnd) && performance.now() < deadline) await delay(5);
}

/** Collects the server's log lines. Resolves when the server listens, and rejects if it ends. */
function listening(child: ChildProcess, lines: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`sshd did not start: ${lines.join('\n')}`)));
    if (!child.stderr) throw new Error('sshd was started without a log');
    createInterface(child.stderr).on('line', (line) => {
      lines.push(line);
      if (line.startsWith('Server listening')) resolve();
    });
  });
}

function runSsh(
  port: number,
  privateKeyFile: string,
  certificateFile: string | readonly string[] | undefined,
  environment: Readonly<Record<string, string>>,
): Promise<{ status: number | null; said: string }> {
  const options = [
    'IdentitiesOnly=yes',
    'IdentityAgent=none',
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    ...[certificateFile ?? []].flat().map((file) => `CertificateFile=${file}`),
    ...('SSH_SK_PROVIDER' in environment ? ['SecurityKeyProvider=$SSH_SK_PROVIDER'] : []),
  ].flatMap((option) => ['-o', option]);
  const target = `${userInfo().username}@127.0.0.1`;
  const child = spawn(
    'ssh',
    ['-F', 'none', '-p', String(port), '-i', privateKeyFile, ...options, target, 'true'],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...environment } },
  );
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, said }));
  });
}
