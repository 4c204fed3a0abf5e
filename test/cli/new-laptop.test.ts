import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { openProfile, startBrowser } from '../support/browser.js';
import { findNode, NODE_VERSIONS } from '../support/node-versions.js';
import { findProgram, requires } from '../support/programs.js';
import { startSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';
import { runProgram, type CommandEnd } from '../support/svc-command.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const PRINCIPAL = 'ada@acme.example';
/** The programs of the laptop beside Node and ssh: curl, and what a POSIX system has. */
const TOOLS = 'curl sh env cat chmod cut id mkdir mv rm sha256sum ssh-keygen uname'.split(' ');

/** A command that the user typed, with its time in seconds. */
interface TypedCommand {
  readonly line: string;
  readonly seconds: number;
}

/** An account on a new machine: an empty home folder, and a PATH with one Node and the tools of the system. */
class Laptop {
  readonly typed: TypedCommand[] = [];

  private constructor(readonly home: string) {}

  static async create(node: string, sshPort: number): Promise<Laptop> {
    const laptop = new Laptop(await makeTemporaryDirectory());
    const bin = join(laptop.home, 'system');
    mkdirSync(bin);
    symlinkSync(node, join(bin, 'node'));
    for (const tool of TOOLS) symlinkSync(findProgram(tool) ?? tool, join(bin, tool));
    const script = (name: string, line: string) => {
      writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`);
      chmodSync(join(bin, name), 0o755);
    };
    // OpenSSH takes the home folder from the password database, and its port is one of the test.
    const settings = `-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="$HOME/.ssh/known_hosts"`;
    const ssh = findProgram('ssh');
    script('ssh', `exec ${ssh} -F "$HOME/.ssh/config" ${settings} -p ${sshPort} "$@"`);
    script('xdg-open', 'printf %s "$1" >"$HOME/opened"; mv "$HOME/opened" "$HOME/address"');
    return laptop;
  }

  /** Types a command into a shell. */
  async type(line: string, meanwhile = async () => {}): Promise<CommandEnd> {
    const { HOME, PATH } = { HOME: this.home, PATH: `${this.home}/.local/bin:${this.home}/system` };
    const start = performance.now();
    const running = runProgram('/bin/sh', ['-c', line], { env: { HOME, PATH, TERM: 'xterm' } });
    const [end] = await Promise.all([running, meanwhile()]);
    this.typed.push({ line, seconds: (performance.now() - start) / 1000 });
    return end;
  }

  /** Waits for the address that `svc login` opens in the browser. */
  async openedAddress(): Promise<string> {
    const file = join(this.home, 'address');
    await vi.waitUntil(() => existsSync(file), { timeout: 30_000 });
    return readFileSync(file, 'utf8');
  }

  /** States the number of commands and the seconds. */
  report(): string {
    const total = this.typed.reduce((sum, { seconds }) => sum + seconds, 0);
    const lines = this.typed.map(({ line, seconds }) => `  ${seconds.toFixed(1)} s  $ ${line}`);
    return [`${this.typed.length} commands, ${total.toFixed(1)} seconds:`, ...lines].join('\n');
  }
}

for (const major of NODE_VERSIONS) {
  const needs = ['chromium', 'curl', `node@${major}`, ...SSHD_PROGRAMS];
  requires(...needs).describe(`a new laptop with only Node ${major}`, () => {
    let app: TestApp;
    let ada: EnrolledUser;
    let sshd: Sshd;
    let browser: Browser;
    let laptop: Laptop;
    beforeAll(async () => {
      app = await startTestApp();
      ada = await app.enrolled(PRINCIPAL);
      const authority = await app.client().get('/v1/credentials/ssh/ca');
      sshd = await startSshd({ authorities: [authority.text.trim()], principals: [PRINCIPAL] });
      browser = await startBrowser();
      laptop = await Laptop.create(findNode(major) ?? '', sshd.port);
    });
    afterAll(async () => {
      await browser.close();
      await sshd.stop();
      await app.close();
      await removeDirectory(laptop.home);
    });

    /** The person in front of the laptop: touches the key on the page that the command opened. */
    const touchKey = async () => {
      const visitor = await openProfile(browser, app.baseUrl);
      const { page } = visitor;
      await visitor.plugIn(ada.key);
      await page.goto(await laptop.openedAddress());
      await page.getByRole('button', { name: 'Use your security key' }).click();
      await page.getByText('You can close this window').waitFor();
      await visitor.leave();
    };

    it('logs in to a host by four commands', async () => {
      const version = await runProgram(findNode(major) ?? '', ['--version']);
      expect(version.stdout).toMatch(new RegExp(`^v${major}\\.`));

      const installed = await laptop.type(`curl -fsS ${app.baseUrl}/install.sh | sh`);
      expect(installed).toMatchObject({ status: 0, stderr: '' });
      expect(installed.stdout).toContain('Next: svc login');

      const login = await laptop.type('svc login', touchKey);
      expect(login.status).toBe(0);
      expect(login.stdout).toContain(`Logged in as ${PRINCIPAL}`);

      const setup = await laptop.type('svc setup --host 127.0.0.1 --yes');
      expect(setup).toMatchObject({ status: 0, stderr: '' });

      const ssh = await laptop.type(`ssh ${userInfo().username}@127.0.0.1 echo in`);
      expect(ssh).toMatchObject({ status: 0, stdout: 'in\n' });

      expect(laptop.typed).toHaveLength(4);
      console.log(`Node ${version.stdout.trim()}: ${laptop.report()}`);
    });

    it('removes what the setup wrote', async () => {
      const removed = await laptop.type('svc setup --remove --yes');
      expect(removed).toMatchObject({ status: 0, stderr: '' });
      expect(existsSync(join(laptop.home, '.ssh/config'))).toBe(false);
    });
  });
}
