import '../support/full-scale-only.js';
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openProfile, startBrowser } from '../support/browser.js';
import { TOUR_ADDRESS } from '../support/demo-process.js';
import { start, type EntryPoint } from '../support/entry-point.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const COMMITTED = join(ROOT, 'docs/guides/screenshots/tour');
const MOST_STEPS = 6;
const SCREEN = { width: 960, height: 640 };
/** The number of last lines of output that the picture of a terminal shows. */
const LINES = 16;

/** A running command, its output so far, and its exit status when it has ended. */
interface Terminal {
  readonly command: string;
  output: string;
  readonly ended: Promise<number | null>;
}

requires('chromium', 'sshd', 'ssh', 'ssh-keygen').describe('a stranger with the README', () => {
  let folder: string;
  let home: string;
  let browser: Browser;
  let demo: EntryPoint | undefined;
  const steps: string[] = [];
  const screenshots: string[] = [];

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    home = join(folder, 'home');
    await mkdir(home);
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await demo?.stop();
    await removeDirectory(folder);
  });

  const screenshotFolder = () =>
    process.env['SVC_SCREENSHOTS'] === undefined ? join(folder, 'screenshots') : COMMITTED;

  /** Records a step of the visitor: a pasted command, an opened page or a press in the browser. */
  const count = (step: string) => steps.push(step);

  async function film(page: Page): Promise<void> {
    const path = join(screenshotFolder(), `${screenshots.length + 1}.png`);
    await page.screenshot({ path, animations: 'disabled' });
    screenshots.push(path);
  }

  /** Takes a picture of a page that looks like a terminal with a command and its output. */
  async function filmTerminal({ command, output }: Pick<Terminal, 'command' | 'output'>) {
    const page = await browser.newPage({ viewport: SCREEN });
    const shown = output.trimEnd().split('\n').slice(-LINES);
    const text = [`$ ${command}`, '', ...shown]
      .join('\n')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;');
    await page.setContent(
      `<body style="margin:0;background:#14181f;color:#e8ebf0"><pre style="margin:1.5rem;font:14px/1.5 'DejaVu Sans Mono',monospace;white-space:pre-wrap;overflow-wrap:anywhere">${text}</pre>`,
    );
    await film(page);
    await page.close();
  }

  /** Runs a command, exactly as the text has it, in a shell with an empty home folder. */
  function paste(command: string): Terminal {
    const env = { PATH: process.env['PATH'], HOME: home };
    const child = spawn('/bin/sh', ['-c', command], { cwd: folder, env, stdio: 'pipe' });
    child.stdin.end();
    const terminal: Terminal = {
      command,
      output: '',
      ended: new Promise((done) => {
        child.once('close', done);
      }),
    };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (terminal.output += text));
    }
    return terminal;
  }

  /**
   * Reads three things from the README: the first command, the URL to open, and the link to choose.
   */
  async function readme() {
    const text = await readFile(join(ROOT, 'README.md'), 'utf8');
    const command = /```sh\n(.*?) +#/.exec(text)?.[1] ?? '';
    const [, address = '', entrance = ''] =
      /open (http:\S+) in a browser,\s+choose \*\*(\w+)\*\*/.exec(text) ?? [];
    return { command, address, entrance };
  }

  it('logs in on the demo’s sshd in at most 6 steps, as README and tour say', async () => {
    await mkdir(screenshotFolder(), { recursive: true });
    const told = await readme();

    // Only the last part of the command is run, because the packages are installed and built
    // already.
    count(`paste: ${told.command}`);
    const script = told.command.split(' && ').at(-1)?.replace('npm run ', '') ?? '';
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const entry = /exec node dist\/(\S+)$/.exec(scripts[script])?.[1] ?? '';
    demo = start(entry, ['--port', String(await freePort())], { cwd: folder });
    const printed = await demo.printed(TOUR_ADDRESS);
    await filmTerminal({ command: told.command, output: printed.input ?? '' });

    const { pathname } = new URL(told.address);
    const visitor = await openProfile(browser, printed[1] ?? '');
    const { page } = visitor;
    await page.setViewportSize(SCREEN);
    count(`open: ${told.address}`);
    await page.goto(pathname);
    await film(page);

    count(`press: ${told.entrance}`);
    await page.getByRole('link', { name: told.entrance, exact: true }).click();
    await page.getByRole('heading', { name: told.entrance, level: 1 }).waitFor();
    const [logIn, logInAtServer] = await page.locator('ol > li').all();
    const command = (await logIn?.locator('[data-command]').textContent()) ?? '';
    const choice = /choose “(.+)”/.exec((await logIn?.textContent()) ?? '')?.[1] ?? '';
    const ssh = (await logInAtServer?.locator('[data-command]').textContent()) ?? '';
    await film(page);

    count(`paste: ${command}`);
    const login = paste(command);
    await expect.poll(() => login.output).toMatch(/^ +http:\S+$/m);
    await filmTerminal(login);

    const window = await openProfile(browser, printed[1] ?? '');
    await window.page.setViewportSize(SCREEN);
    await window.page.goto(/^ +(http:\S+)$/m.exec(login.output)?.[1] ?? '');
    count(`press: ${choice}`);
    const button = window.page.getByRole('button', { name: choice });
    await button.waitFor();
    await film(window.page);
    await button.click();
    await window.page.getByRole('heading', { name: 'Logged in' }).waitFor();
    expect(await login.ended).toBe(0);
    expect(login.output).toContain(`Logged in as ${choice}`);

    count(`paste: ${ssh}`);
    const shell = paste(ssh);
    expect(await shell.ended, shell.output).toBe(0);
    await filmTerminal(shell);
    expect(shell.output).toContain(`Key ID: "${choice}@localhost"`);
    expect(shell.output).toMatch(new RegExp(`Principals: \\s+${choice}`));

    expect(visitor.pageErrors).toEqual([]);
    await visitor.leave();
    await window.leave();
    process.stdout.write(`${steps.length} steps from the README to a login on the demo’s sshd:\n`);
    for (const [index, step] of steps.entries()) process.stdout.write(`  ${index + 1}. ${step}\n`);
    expect(steps.length).toBeLessThanOrEqual(MOST_STEPS);
  });

  it('leaves the home folder of the stranger as it was', async () => {
    expect(steps.length).toBeGreaterThan(0);
    expect(await readdir(home)).toEqual([]);
  });

  it('has a screenshot of each step, each smaller than 100 KB', async () => {
    expect(screenshots).toHaveLength(steps.length);
    for (const path of screenshots) {
      expect((await stat(path)).size, path).toBeLessThan(100_000);
    }
  });
});
