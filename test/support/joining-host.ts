import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './programs.js';

/** The programs and rights that tests with a {@link JoiningHost} need. */
export const HOST_PROGRAMS = ['root', 'sshd', 'ssh-keygen', 'flock', 'curl'] as const;

/** The exit status of a program, and the text of both its outputs. */
export interface Ending {
  readonly status: number;
  readonly said: string;
}

/** The options for running a script. */
export interface RunOptions {
  /** The shell that runs the script; `sh` by default. */
  readonly shell?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** The options of a host. */
export interface HostOptions {
  /** True if sshd_config includes `sshd_config.d/*.conf`, as most distributions have it. */
  readonly dropIns?: boolean;
  /** Further lines of `sshd_config`, at its end. */
  readonly config?: readonly string[];
}

/**
 * A host that joins the service, in a folder of its own. It has the configuration of a real sshd,
 * and folders for programs, units and cron. The folder is in `/var/lib`, because sshd reads no
 * principals in a folder to which other users may write.
 */
export class JoiningHost {
  readonly folder = mkdtempSync('/var/lib/svc-host-');
  readonly etc = this.#makeFolder('etc');
  readonly sbin = this.#makeFolder('sbin');
  readonly units = this.#makeFolder('units');
  readonly cron = this.#makeFolder('cron');
  readonly config = join(this.etc, 'sshd_config');
  readonly dropIn = join(this.etc, 'sshd_config.d', '00-svc.conf');
  readonly list = join(this.etc, 'svc', 'revoked.krl');
  readonly authorities = join(this.etc, 'svc', 'ca.pub');
  readonly pidFile = join(this.folder, 'sshd.pid');

  constructor(
    readonly port: number,
    { dropIns = true, config = [] }: HostOptions = {},
  ) {
    mkdirSync('/run/sshd', { recursive: true });
    const hostKey = join(this.folder, 'host_key');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', hostKey]);
    if (dropIns) mkdirSync(join(this.etc, 'sshd_config.d'));
    const lines = [
      '# The configuration of a test.',
      ...(dropIns ? [`Include ${this.etc}/sshd_config.d/*.conf`] : []),
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${hostKey}`,
      `PidFile ${this.pidFile}`,
      'UsePAM no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'AuthorizedKeysFile none',
      'PermitRootLogin prohibit-password',
      'LogLevel VERBOSE',
      ...config,
    ];
    writeFileSync(this.config, lines.join('\n'), { mode: 0o640 }); // no line feed at the end
  }

  /** The options by which the install script uses the folders of this host. */
  get paths(): string[] {
    const { etc, sbin, units, cron } = this;
    return ['--etc', etc, '--sbin', sbin, '--units', units, '--cron', cron];
  }

  /**
   * The options for the first run of the install script on this host. They let Alice log in as
   * root, and prevent a reload of the machine's sshd.
   */
  get joining(): string[] {
    return [...this.paths, '--no-reload', '--schedule', 'systemd', ...ROOT_FOR_ALICE];
  }

  /**
   * Runs a script with options, as `curl … | sh -s -- …` does: the shell reads the script from its
   * standard input.
   */
  run(script: string, options: readonly string[], how: RunOptions = {}): Promise<Ending> {
    const [program = 'sh', ...before] = how.shell ?? ['sh'];
    return ending(program, [...before, '-s', '--', ...options], script, how.environment);
  }

  /**
   * Runs the command of the refresh unit as systemd does: the words of its ExecStart, with few
   * environment variables.
   */
  refresh(environment: Readonly<Record<string, string>> = {}): Promise<Ending> {
    const unit = readFileSync(join(this.units, 'svc-refresh-krl.service'), 'utf8');
    const [program = '', ...words] = (/^ExecStart=(.+)$/m.exec(unit)?.[1] ?? '').split(' ');
    return ending(program, words, '', environment);
  }

  /** Checks the sshd configuration of this host by `sshd -t`. */
  test(): Promise<Ending> {
    return ending(findProgram('sshd') ?? 'sshd', ['-t', '-f', this.config], '');
  }

  /**
   * Returns every file and folder of the host with its mode, owner and content. If `identity` is
   * true, adds the inode and the time of the last change.
   */
  tree({ identity = false } = {}): Record<string, string> {
    const paths = readdirSync(this.folder, { recursive: true, encoding: 'utf8' }).toSorted();
    return Object.fromEntries(
      paths.map((path) => {
        const file = join(this.folder, path);
        if (!existsSync(file)) return [path, 'a broken link'];
        const { mode, ino, mtimeMs, uid, gid } = statSync(file);
        const content = statSync(file).isFile() ? readFileSync(file, 'latin1') : '';
        const which = identity ? `${ino} ${mtimeMs} ` : '';
        return [path, `${which}${mode.toString(8)} ${uid}:${gid} ${content}`];
      }),
    );
  }

  /**
   * Makes a folder with links to every program except the given ones. As the PATH of a run, it
   * stands for a host without these programs.
   */
  pathWithout(...names: readonly string[]): string {
    const folder = mkdtempSync(join(this.folder, 'path-'));
    for (const directory of ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin']) {
      if (!existsSync(directory)) continue;
      for (const name of readdirSync(directory)) {
        if (names.includes(name) || existsSync(join(folder, name))) continue;
        try {
          symlinkSync(join(directory, name), join(folder, name));
        } catch {
          // The folder has a broken link with this name already. `existsSync` returns false for it.
        }
      }
    }
    return folder;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #makeFolder(name: string): string {
    mkdirSync(join(this.folder, name), { mode: 0o755 });
    return join(this.folder, name);
  }
}

/** The options of the install script that let Alice log in as root. */
export const ROOT_FOR_ALICE = ['--account', 'root', '--principal', 'alice@example.com'];

/**
 * Runs a program in a process group of its own. Its environment has only PATH and the given
 * variables. A status of -1 means that a signal ended it.
 */
export function ending(
  program: string,
  words: readonly string[],
  input: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Ending> {
  const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const child = spawn(program, words, { env: { PATH, ...environment }, detached: true });
  return new Promise((resolve, reject) => {
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
    }
    child.once('error', reject);
    child.once('close', (status) => resolve({ status: status ?? -1, said }));
    child.stdin.on('error', () => undefined); // a shell that was killed does not read its input
    child.stdin.end(input);
  });
}
