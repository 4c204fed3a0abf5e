import '../support/full-scale-only.js';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EnrolledUser, TestApp } from '../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../support/browser.js';
import { freePort } from '../support/free-port.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { Laptop } from '../support/laptop.js';
import { authorize } from '../support/oauth-flow.js';
import {
  COLOR_SCHEMES,
  drawnPicture,
  imagesIn,
  PICTURE_WIDTH,
  wrapped,
  type ColorScheme,
} from '../support/picture.js';
import { findProgram, requires } from '../support/programs.js';
import { PUBLIC_URL, PublicName } from '../support/public-name.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { smallPng } from '../support/small-png.js';
import { runSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';
import { removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const PICTURE = 'docs/pictures/one-day.svg';
/** The largest size of the picture in bytes. */
const LARGEST = 200 * 1024;
/** True if the run replaces the picture (`SVC_SCREENSHOTS=1`) instead of comparing it. */
const isReplacing = (process.env['SVC_SCREENSHOTS'] ?? '') !== '';
const ADA = 'ada@acme.example';
const HOST = 'web1.prod.acme.example';
const LOGIN = `ssh ${HOST} echo welcome`;
/** The size of the browser window in pixels. */
const VIEWPORT = { width: 440, height: 530 };
/**
 * The largest mean difference of two images of the page, on the scale from 0 to 255. Other fonts
 * move lines, which makes about 15. Another color scheme makes more. The test compares the words
 * separately.
 */
const MOST_DIFFERENT = 25;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Returns the alternative text of the picture in the README. */
function alternativeText(): string {
  const [, text = ''] =
    new RegExp(`!\\[([^\\]]*)\\]\\(${PICTURE}\\)`).exec(read('README.md')) ?? [];
  return text.replaceAll(/\s+/g, ' ');
}

describe('the picture of the README', () => {
  it('is small, reads no other file, and comes before the explanation', () => {
    expect(statSync(join(ROOT, PICTURE)).size).toBeLessThan(LARGEST);
    expect(read(PICTURE)).not.toMatch(/(?:href|src)="(?!data:image\/png;)|<script|url\(|@import/);
    const [first = ''] = read('README.md').split('\n## How it fits together');
    expect(first).toContain(`](${PICTURE})`);
    expect(first.split('\n').length).toBeLessThanOrEqual(60);
  });

  it('breaks lines where a terminal of its width would, and loses no word', () => {
    const line = `svc: ${'word '.repeat(40)}end`;
    expect(wrapped(line).join(' ')).toBe(line);
    expect(wrapped('x'.repeat(150)).map(({ length }) => length)).toEqual([80, 70]);
    expect(PICTURE_WIDTH).toBeLessThan(1010);
  });
});

const needs = ['chromium', 'curl', 'script', ...SSHD_PROGRAMS, ...HOST_PROGRAMS];
requires(...needs).describe('one day, of which the README has a picture', () => {
  let name: PublicName;
  let app: TestApp;
  let acme: ScimOrganization;
  let ada: EnrolledUser;
  let adaId: string;
  let host: JoiningHost;
  let sshd: Sshd;
  let laptop: Laptop;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;

  beforeAll(async () => {
    name = await PublicName.open();
    app = await name.startApp();
    acme = await foundOrganization(app, 'acme.example');
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
    const made = await acme.scim('POST', '/Users', { schemas, userName: ADA });
    adaId = String(made.json.id);
    ada = await app.enrolled(ADA);
    host = new JoiningHost(await freePort());
    sshd = await joinedHost();
    laptop = await Laptop.create(process.execPath, sshd.port, name.env);
    await setUp();
    browser = await startBrowser();
    visitor = await openProfile(browser, PUBLIC_URL, {
      proxy: { server: name.env['https_proxy'] ?? '' },
      viewport: VIEWPORT,
      deviceScaleFactor: 1.5,
    });
    ({ page } = visitor);
    await visitor.plugIn(ada.key);
  });
  afterAll(async () => {
    await browser.close();
    await sshd.stop();
    await app.close();
    await name.close();
    await removeDirectory(laptop.home);
  });

  /** Starts the sshd of a host that has joined the service. Ada may log in to it. */
  async function joinedHost(): Promise<Sshd> {
    const { text } = await app.client().get('/install-host.sh');
    const account = ['--account', userInfo().username, '--principal', ADA];
    const args = [...host.paths, '--no-reload', '--schedule', 'systemd', ...account];
    const { status, said } = await host.run(text, args, { environment: name.env });
    if (status !== 0) throw new Error(said);
    return runSshd(host);
  }

  /** Makes the steps of the day before the picture: Ada installs the command and sets up ssh. */
  async function setUp(): Promise<void> {
    // ssh reaches the host of the picture on this machine.
    const lines = [`Host ${HOST}`, '  HostName 127.0.0.1', `  User ${userInfo().username}`];
    mkdirSync(join(laptop.home, '.ssh'), { mode: 0o700 });
    const config = [...lines, '  LogLevel ERROR', '  BatchMode yes', ''].join('\n');
    writeFileSync(join(laptop.home, '.ssh/config'), config, { mode: 0o600 });
    const touch = async () => {
      const { searchParams } = new URL(await laptop.openedAddress());
      await fetch(await authorize(ada.client, Object.fromEntries(searchParams), ada.key));
    };
    const ends = [
      await laptop.type(`curl -fsSL ${PUBLIC_URL}/install.sh | sh`),
      await laptop.type('svc login', touch),
      await laptop.type(`svc setup ssh --host ${HOST} --yes`),
      await laptop.type('rm "$HOME/address"'),
    ];
    expect(ends.map(({ status }) => status)).toEqual(ends.map(() => 0));
  }

  const state = (file: string) =>
    join(laptop.home, '.local/state/svc', new URL(PUBLIC_URL).host, 'ssh', file);

  /**
   * Runs a command in a terminal, and expects its exit status. Returns the lines that the terminal
   * shows.
   */
  async function type(line: string, status: number, meanwhile?: () => Promise<void>) {
    const end = await laptop.type(
      `${findProgram('script')} -qec '${line}' /dev/null </dev/null`,
      meanwhile,
    );
    expect([line, end.status, end.stderr]).toEqual([line, status, '']);
    return [`$ ${line}`, ...shown(end.stdout)];
  }

  /** Replaces the values of this machine and this run by the names that the picture shows. */
  function shown(output: string): string[] {
    return output
      .replaceAll('\r', '')
      .replaceAll(/(?<=\/oauth\/authorize\?)\S+/g, '...')
      .replaceAll(`${userInfo().username}@127.0.0.1`, `deploy@${HOST}`)
      .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:…')
      .replaceAll(/\b\d{4}-\d\d-\d\d \d\d:\d\d\b/g, '2026-12-01 17:00')
      .trimEnd()
      .split('\n');
  }

  /** Returns the page that asks for the touch: a screenshot in each color scheme, and its text. */
  async function photographed() {
    const images = {} as Record<ColorScheme, Buffer>;
    for (const colorScheme of COLOR_SCHEMES) {
      await page.emulateMedia({ colorScheme });
      await page.waitForLoadState('networkidle');
      const shot = await page.screenshot({ animations: 'disabled', caret: 'hide' });
      images[colorScheme] = smallPng(shot);
    }
    const heading = await page.getByRole('heading', { level: 1 }).innerText();
    const words = (await page.locator('main').innerText()).split(/\n+/);
    return { images, heading, text: shown(words.map((line) => line.trim()).join('\n')).join('\n') };
  }

  /** Returns the mean difference of two images, on the scale from 0 to 255. */
  async function difference(first: Buffer, second: Buffer): Promise<number> {
    const addresses = [first, second].map(
      (one) => `data:image/png;base64,${one.toString('base64')}`,
    );
    await page.goto('about:blank');
    return page.evaluate<number>(`(async () => {
      const read = async (address) => {
        const image = new Image();
        image.src = address;
        await image.decode();
        const canvas = new OffscreenCanvas(44, 50).getContext('2d');
        canvas.drawImage(image, 0, 0, 44, 50);
        return canvas.getImageData(0, 0, 44, 50).data;
      };
      const [one, other] = [await read(${JSON.stringify(addresses[0])}), await read(${JSON.stringify(addresses[1])})];
      return one.reduce((sum, value, at) => sum + Math.abs(value - other[at]), 0) / one.length;
    })()`);
  }

  it('shows the touch, an ssh that works, and the refusal of a user who left', async () => {
    await page.goto(`/login?provider=demo&login_hint=${ADA}`);
    let asked: Awaited<ReturnType<typeof photographed>> | undefined;
    const touch = async () => {
      await page.goto(await laptop.openedAddress());
      asked = await photographed();
      await page.getByRole('button', { name: 'Use your security key' }).click();
      await page.getByText('You can close this window').waitFor();
    };
    const morning = [...(await type('svc login', 0, touch)), ...(await type(LOGIN, 0))];
    expect(morning.at(-1)).toBe('welcome');
    if (!asked) throw new Error('no page was opened');
    const { heading } = asked;
    expect(heading).toBe('Touch your security key');
    expect(visitor.pageErrors).toEqual([]);

    const removed = await acme.scim('DELETE', `/Users/${adaId}`);
    expect(removed.status).toBe(204);
    expect((await host.refresh(name.env)).status).toBe(0);
    // svc checks at most once in five seconds if the certificate is revoked, and the file says that
    // it just has. So svc does not notice the revocation, and the host refuses the login.
    writeFileSync(state('last-recheck'), '', { mode: 0o600 });
    const refused = [...(await type(LOGIN, 255)), ...(await type('svc status', 3))];
    expect(sshd.lines.join('\n')).toMatch(/revoked/i);
    expect(refused).toContain(`deploy@${HOST}: Permission denied (publickey).`);
    expect((await ada.client.get('/v1/keys')).status).toBe(401);

    const committed = isReplacing ? undefined : read(PICTURE);
    const images = committed === undefined ? asked.images : imagesIn(committed);
    for (const mode of COLOR_SCHEMES) {
      const other = mode === 'light' ? 'dark' : 'light';
      expect(await difference(images[mode], asked.images[mode]), mode).toBeLessThan(MOST_DIFFERENT);
      expect(await difference(images[other], asked.images[mode])).toBeGreaterThan(MOST_DIFFERENT);
    }
    const said = refused.filter((line) => !line.startsWith('$ '));
    const description =
      `One day with svc. The touch: after svc login a page says “${heading}”. ` +
      `The ssh: “${LOGIN}” prints “${morning.at(-1)}”. The leaver: the identity provider deleted ` +
      `the user by SCIM, the same ssh prints “${said[0]}”, and svc status prints “${said[1]}”`;
    const comments = [
      `# the identity provider: DELETE /scim/v2/Users/… answered ${removed.status}`,
      '# the host: fetched the list of revoked certificates, as it does every minute',
    ];
    const picture = drawnPicture(
      description,
      { ...VIEWPORT, caption: '1. One touch in the morning', text: asked.text, images },
      [
        { caption: '2. ssh works, without a password or a key to copy', lines: morning },
        { caption: '3. The user leaves, and is refused', lines: [...comments, ...refused] },
      ],
    );
    if (isReplacing) writeFileSync(join(ROOT, PICTURE), picture);
    expect(picture).toBe(read(PICTURE));
    expect(alternativeText()).toBe(description);
  });
});
