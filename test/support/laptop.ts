import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { findProgram } from './programs.js';
import { runProgram, type CommandEnd } from './svc-command.js';
import { makeTemporaryDirectory } from './temporary-directory.js';

/**
 * The programs on the laptop in addition to Node and ssh. Except for curl and ssh-keygen, they are
 * on every Linux system.
 */
const TOOLS = 'curl sh env cat chmod cut id mkdir mv rm sha256sum ssh-keygen uname'.split(' ');

/** A command that the user typed, and the seconds until it ended. */
export interface TypedCommand {
  readonly line: string;
  readonly seconds: number;
}

/**
 * A user's account on a new machine: an empty home folder, and a PATH with one Node and the tools
 * of the system.
 */
export class Laptop {
  readonly typed: TypedCommand[] = [];

  private constructor(
    readonly home: string,
    /** Further variables of the user's shell. */
    private readonly env: Readonly<Record<string, string>>,
  ) {}

  static async create(
    node: string,
    sshPort: number,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Laptop> {
    const laptop = new Laptop(await makeTemporaryDirectory(), env);
    const bin = join(laptop.home, 'system');
    mkdirSync(bin);
    symlinkSync(node, join(bin, 'node'));
    for (const tool of TOOLS) symlinkSync(findProgram(tool) ?? tool, join(bin, tool));
    const script = (name: string, line: string) => {
      writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`);
      chmodSync(join(bin, name), 0o755);
    };
    // OpenSSH ignores HOME, so the script names the configuration and the known hosts. It also sets
    // the port, because the sshd of the test does not use port 22.
    const settings = `-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="$HOME/.ssh/known_hosts"`;
    const ssh = findProgram('ssh');
    script('ssh', `exec ${ssh} -F "$HOME/.ssh/config" ${settings} -p ${sshPort} "$@"`);
    script('xdg-open', 'printf %s "$1" >"$HOME/opened"; mv "$HOME/opened" "$HOME/address"');
    return laptop;
  }

  /**
   * Runs a command line in a shell, as if the user typed it, and runs `meanwhile` at the same time.
   */
  async type(line: string, meanwhile = async () => {}): Promise<CommandEnd> {
    const { HOME, PATH } = { HOME: this.home, PATH: `${this.home}/.local/bin:${this.home}/system` };
    const start = performance.now();
    const env = { HOME, PATH, TERM: 'xterm', ...this.env };
    const running = runProgram('/bin/sh', ['-c', line], { env });
    const [end] = await Promise.all([running, meanwhile()]);
    this.typed.push({ line, seconds: (performance.now() - start) / 1000 });
    return end;
  }

  /** Waits until `svc login` opens a URL in the browser, and returns the URL. */
  async openedAddress(): Promise<string> {
    const file = join(this.home, 'address');
    await vi.waitUntil(() => existsSync(file), { timeout: 90_000 });
    return readFileSync(file, 'utf8');
  }

  /**
   * Returns a text with the number of typed commands, their total time, and each command with its
   * time.
   */
  report(): string {
    const total = this.typed.reduce((sum, { seconds }) => sum + seconds, 0);
    const lines = this.typed.map(({ line, seconds }) => `  ${seconds.toFixed(1)} s  $ ${line}`);
    return [`${this.typed.length} commands, ${total.toFixed(1)} seconds:`, ...lines].join('\n');
  }
}
