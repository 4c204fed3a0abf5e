import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ageTouches, setRule } from '../support/access-targets.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { assigned } from '../support/domains.js';
import { openProfile, startBrowser, type BrowserProfile } from '../support/browser.js';
import { accessibilityViolations, overflowing } from '../support/page-checks.js';
import { requires } from '../support/programs.js';
import { keepOpened, openedAddress } from '../support/svc-login.js';
import { SvcHome } from '../support/svc-command.js';

requires('chromium', 'script').describe('svc login in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let home: SvcHome;
  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    visitor = await openProfile(browser, app.baseUrl);
    home = await SvcHome.create();
    keepOpened(home);
  });
  afterEach(async () => {
    await visitor.leave();
    await home.remove();
  });

  /** Opens the URL that the command gave to the browser. */
  async function openPage(): Promise<void> {
    await visitor.page.goto((await openedAddress(home)).href);
  }

  const touch = (name = 'Use your security key') =>
    visitor.page.getByRole('button', { name }).click();
  const end = () =>
    visitor.page.getByRole('main').getByText('You can close this window.').waitFor();

  it('one touch on the login page logs the command in', async () => {
    const { key } = await app.enrolled('ada@svc-browser.example');
    await visitor.plugIn(key);
    const running = home.runInTerminal(['login', '--server', app.baseUrl]);
    await openPage();
    await touch();
    await end();
    expect(await running).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('Logged in as ada@svc-browser.example until'),
    });
    expect(visitor.pageErrors).toEqual([]);
    expect(await home.run(['keys'])).toMatchObject({ status: 0 });
    // The page that the command serves stays open after the command has ended.
    const { page } = visitor;
    const backgrounds: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [320, 390, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        expect(await accessibilityViolations(page), `${width} ${colorScheme}`).toEqual([]);
        expect(await overflowing(page)).toEqual([]);
      }
      backgrounds.push(
        await page.evaluate('getComputedStyle(document.querySelector("main")).backgroundColor'),
      );
    }
    expect(backgrounds).toEqual(['rgb(255, 255, 255)', 'rgb(24, 28, 36)']);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('a touch that is too old leads through the page again, and then the act is done', async () => {
    const { key } = await app.enrolled('eve@svc-browser.example');
    await visitor.plugIn(key);
    const login = home.run(['login', '--server', app.baseUrl]);
    await openPage();
    await touch();
    await end();
    await login;
    await app.dataSource.query(
      `UPDATE sessions SET auth_time = auth_time - interval '2 minutes'
        WHERE user_id = (SELECT id FROM users WHERE email = 'eve@svc-browser.example')`,
    );
    const { keys } = JSON.parse((await home.run(['keys', '--json'])).stdout);
    const running = home.runInTerminal(['keys', 'remove', keys[0].id, '--yes'], {
      started: () => {}, // without `end`: the input stays open, as in a terminal
    });
    await openPage();
    await touch('Touch your key again');
    await end();
    const ended = await running;
    // The server never removes a user's only key. It says so only after it has accepted the touch.
    expect(ended.status).toBe(4);
    expect(ended.stdout).toContain('fresh touch');
    expect(ended.stdout).not.toContain('Run: svc login');
  });

  it('kubectl gets a token after the touch that the cluster needs, without an input', async () => {
    const email = 'kim@svc-browser.example';
    const { client, key } = await app.enrolled(email);
    await app.dataSource.query('UPDATE users SET is_org_admin = true WHERE email = $1', [email]);
    await assigned(app, email, 'svc-browser.example');
    await visitor.plugIn(key);
    await home.logIn(app, { client, key });
    const resource = 'https://prod.svc-browser.example';
    const body = { name: 'Production', type: 'kubernetes', resource };
    const { json } = await client.post('/api/v1/applications', body);
    await setRule(app, json.client_id as string, { touchWithinSeconds: 600 });
    await ageTouches(app, email, 700);
    const running = home.runInTerminal(['kubectl', 'token', '--resource', resource]);
    await openPage();
    await touch();
    await end();
    expect(await running).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('ExecCredential') as string,
    });
  });
});
