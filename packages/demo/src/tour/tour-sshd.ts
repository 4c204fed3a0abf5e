import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '@svc/stand-ins/clock';
import { freePort } from '@svc/stand-ins/loopback-server';
import { READY_PEOPLE } from '../people/people.js';
import { HttpClient, unexpected } from '../scenario/http-client.js';
import { findOpenSsh, type OpenSsh } from '@svc/stand-ins/open-ssh';
import { sshArguments } from '@svc/stand-ins/ssh-arguments';
import { replaceFile } from '@svc/stand-ins/sshd-files';
import { startSshd, type SshdProcess } from '@svc/stand-ins/sshd-process';

const run = promisify(execFile);

/** The milliseconds between two requests for the list of revoked certificates. */
const REFRESH_INTERVAL = 2000;

/**
 * The client IP address of the requests for the list of revoked certificates. It differs from that
 * of the visitor's browser, so that the two have separate rate limits.
 */
const ADDRESS = '192.0.2.23';

/**
 * The sshd to which the visitor logs in. It fetches the list of revoked certificates every two
 * seconds.
 */
export class TourSshd {
  readonly #ending = new AbortController();
  readonly #client: HttpClient;
  #refreshing: Promise<void> = Promise.resolve();
  #process: SshdProcess | undefined;

  private constructor(
    private readonly programs: OpenSsh,
    private readonly folder: string,
    baseUrl: string,
    readonly port: number,
  ) {
    this.#client = new HttpClient(baseUrl, ADDRESS);
  }

  /** Starts sshd in a folder, or returns the names of the programs that this machine lacks. */
  static async start(
    folder: string,
    baseUrl: string,
  ): Promise<TourSshd | { readonly missing: readonly string[] }> {
    const programs = findOpenSsh();
    if ('missing' in programs) return programs;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const sshd = new TourSshd(programs, folder, baseUrl, await freePort(0));
    await sshd.#start();
    return sshd;
  }

  /**
   * The Unix account for every login. It is the account that runs the demo, because an sshd that
   * root did not start can log in only its own account.
   */
  get user(): string {
    return userInfo().username;
  }

  /** The public key of the host as a line for a file of known hosts. */
  async hostKey(): Promise<string> {
    return (await readFile(this.#file('host.pub'), 'utf8')).trim();
  }

  /**
   * Generates a key pair with which the demo itself logs in, and returns the line of the public
   * key.
   */
  async newKeyPair(name: string): Promise<string> {
    await this.#generate(name);
    return (await readFile(this.#file(`${name}.pub`), 'utf8')).trim();
  }

  /** Stores the certificate of a generated key pair. */
  async keepCertificate(name: string, certificate: string): Promise<void> {
    await writeFile(this.#file(`${name}-cert.pub`), `${certificate}\n`);
  }

  /** Returns true if a login with a generated key pair and its certificate succeeds. */
  async accepts(name: string): Promise<boolean> {
    const certificate = this.#file(`${name}-cert.pub`);
    const login = sshArguments({ port: this.port, identity: this.#file(name), certificate });
    return run(this.programs.ssh, [...login, `${this.user}@127.0.0.1`, 'true']).then(
      () => true,
      () => false,
    );
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#refreshing;
    await this.#process?.stop();
  }

  async #start(): Promise<void> {
    if (!existsSync(this.#file('host'))) await this.#generate('host');
    const authority = await this.#client.get('/v1/credentials/ssh/ca');
    if (authority.status !== 200) throw unexpected(authority);
    await writeFile(this.#file('authorities'), authority.body);
    const principals = READY_PEOPLE.map(({ email }) => `${email}\n`).join('');
    await writeFile(this.#file('principals'), principals);
    await this.#refresh();
    await writeFile(this.#file('greeting'), greeting(this.programs.keygen));
    const command = `/bin/sh '${this.#file('greeting').replaceAll("'", `'\\''`)}'`;
    const { folder, port } = this;
    this.#process = await startSshd(this.programs.sshd, { folder, port, command });
    this.#refreshing = this.#keepRefreshing();
  }

  /** Fetches the list of revoked certificates repeatedly. If a fetch fails, the old list stays. */
  async #keepRefreshing(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await systemClock.sleep(REFRESH_INTERVAL, { signal }).catch(() => {});
      if (!signal.aborted) await this.#refresh().catch(() => {});
    }
  }

  async #refresh(): Promise<void> {
    // Without the signal, a request without an answer would keep the demo from stopping.
    const list = await this.#client.download('/v1/credentials/ssh/krl', this.#ending.signal);
    await replaceFile(this.#file('revoked'), list);
  }

  async #generate(name: string): Promise<void> {
    for (const file of [name, `${name}.pub`]) await rm(this.#file(file), { force: true });
    const args = ['-q', '-t', 'ed25519', '-N', '', '-C', `svc-demo-${name}`, '-f'];
    await run(this.programs.keygen, [...args, this.#file(name)]);
  }

  #file(name: string): string {
    return join(this.folder, name);
  }
}

/** Returns the script that every login runs: it shows the certificate, and gives no shell. */
function greeting(keygen: string): string {
  return `echo 'You are logged in at the sshd of the svc demo, without a password and without a key on the host.'
echo 'This certificate let you in:'
echo
sed -n 's/^publickey //p' "$SSH_USER_AUTH" | '${keygen}' -L -f -
echo
echo 'This sshd gives no shell. The login ends here.'
`;
}
