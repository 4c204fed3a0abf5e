import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openProfile, startBrowser, type BrowserProfile } from '../support/browser.js';
import { Client } from '../support/client.js';
import { listeningAddresses, processesOf, startDemoProcess } from '../support/demo-process.js';
import type { DemoProcess } from '../support/demo-process.js';
import '../support/full-scale-only.js';
import { accessibilityViolations, checkPage, overflowing, tabTo } from '../support/page-checks.js';
import { requires } from '../support/programs.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ENTRANCES = ['engineer', 'admin', 'operator'];
const PAGES = ['/demo', ...ENTRANCES.map((name) => `/demo/${name}`), '/demo/leaver'];
const KINDS = ['session', 'certificate', 'application'];

/** The response of `/demo/live`: what access the employee who leaves has, and the latest events. */
interface Live {
  readonly workday: {
    readonly isEmployed: boolean;
    readonly access: Record<string, { isOpen: boolean; endedAfter: number | null }>;
  };
  readonly events: { type: string; subject_email: string | null }[];
}

let cwd: string;
let running: DemoProcess;

/** Returns the links and the commands in the steps on the page `/demo/{name}`. */
async function stepsOf(name: string) {
  const { text } = await new Client(running.baseUrl).get(`/demo/${name}`);
  const list = text.slice(text.indexOf('<ol'), text.indexOf('</ol>'));
  const unescape = (one = '') => one.replaceAll('&amp;', '&').replaceAll('&#39;', "'");
  return {
    links: [...list.matchAll(/href="([^"]*)"/g)].map(([, href]) => unescape(href)),
    commands: [...list.matchAll(/data-command>([^<]*)</g)].map(([, command]) => unescape(command)),
  };
}

/**
 * Waits until the browser is at a path. It compares the whole path, because the URL of the login
 * page ends with the path to which the login returns.
 */
const arrives = (page: Page, path: string) => page.waitForURL(({ pathname }) => pathname === path);

async function live(): Promise<Live> {
  return (await new Client(running.baseUrl).get('/demo/live')).json;
}

describe('the tour of the demo', () => {
  beforeAll(async () => {
    cwd = await makeTemporaryDirectory();
    running = await startDemoProcess(cwd);
  });
  afterAll(async () => {
    await running.demo.stop();
    await removeDirectory(cwd);
  });

  it('links every step of every entrance to a page that is there', async () => {
    for (const name of ENTRANCES) {
      const { links } = await stepsOf(name);
      expect(links.length, name).toBeGreaterThan(3);
      for (const href of links) {
        const answer = await new Client(running.baseUrl).get(href);
        const isThere = answer.status < 400 || (answer.status === 401 && href === '/metrics');
        expect([href, isThere]).toEqual([href, true]);
      }
    }
  });

  it('runs the operator’s command, which reads the metrics without a token in its arguments', async () => {
    const { commands } = await stepsOf('operator');
    expect(commands).toHaveLength(1);
    const read = execFileSync('/bin/sh', ['-c', commands[0] ?? ''], { encoding: 'utf8' });
    expect(read).toContain('http_requests_total');
    const [, token = 'none'] =
      /Bearer (\S+)"/.exec(readFileSync(`${running.dataDir}/tour/metrics.curl`, 'utf8')) ?? [];
    expect(commands[0]).not.toContain(token);
  });

  it('listens on loopback alone, with its application, its provider and its sshd', async () => {
    const addresses = listeningAddresses(processesOf(running.demo.pid));
    const hosts = new Set(addresses.map((address) => address.split(':')[0]));
    const loopback = ['0100007F', '00000000000000000000000001000000'];
    expect(addresses.length).toBeGreaterThanOrEqual(4);
    expect([...hosts].filter((host) => !loopback.includes(host ?? ''))).toEqual([]);
  });

  it('lets no page of another origin read its events or end the access of a person', async () => {
    const origin = 'https://evil.example';
    const read = await new Client(running.baseUrl).get('/demo/live', { headers: { origin } });
    expect(read.headers.get('access-control-allow-origin')).toBeNull();
    for (const path of ['/demo/leaver/leave', '/demo/leaver/return']) {
      for (const from of [origin, '', 'http://127.0.0.1']) {
        const sent = await new Client(running.baseUrl).post(path, undefined, {
          headers: { origin: from },
        });
        expect(sent).toMatchObject({ status: 403, json: { code: 'invalid_origin' } });
      }
    }
    expect((await live()).workday.isEmployed).toBe(true);
  });

  it('ends a session of its application for a logout token of the service alone', async () => {
    const address = `${await applicationUrl()}/backchannel-logout`;
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = `${part({ alg: 'none', typ: 'logout+jwt' })}.${part({ sub: 'x' })}.`;
    for (const token of [unsigned, '']) {
      const body = new URLSearchParams({ logout_token: token });
      expect((await fetch(address, { method: 'POST', body })).status).toBe(400);
    }
    expect((await live()).workday.access['application']?.isOpen).toBe(true);
  });

  it('reports an access that works, from real tries at the service, sshd and application', async () => {
    const { workday } = await live();
    expect(Object.keys(workday.access)).toEqual(KINDS);
    for (const kind of KINDS) expect([kind, workday.access[kind]?.isOpen]).toEqual([kind, true]);
  });

  it('answers an unknown entrance with 404, and links the first page to every entrance', async () => {
    expect((await new Client(running.baseUrl).get('/demo/janitor')).status).toBe(404);
    const { text } = await new Client(running.baseUrl).get('/demo');
    for (const name of ENTRANCES) expect(text).toContain(`href="/demo/${name}"`);
  });

  requires('chromium').describe('in Chromium', () => {
    let browser: Browser;
    let visitor: BrowserProfile;
    let page: Page;

    beforeAll(async () => {
      browser = await startBrowser();
      visitor = await openProfile(browser, running.baseUrl);
      page = visitor.page;
    });
    afterAll(() => browser.close());

    const button = (name: string | RegExp) => page.getByRole('button', { name });

    it.each(PAGES)('%s is accessible, fits every screen and stays small', async (path) => {
      await checkPage(visitor, path);
      expect(visitor.pageErrors).toEqual([]);
    });

    it('logs each person with a key in by one press on the login page', async () => {
      for (const email of ['erin.engineer', 'alex.admin', 'lee.leaver']) {
        const profile = await openProfile(browser, running.baseUrl);
        await profile.page.goto('/login?redirect_to=/demo');
        await profile.page.getByRole('button', { name: `${email}@acme.example` }).click();
        await arrives(profile.page, '/demo');
        const header = profile.page.getByRole('banner');
        await header.getByText(`${email}@acme.example`).waitFor();
        expect(profile.pageErrors).toEqual([]);
        await profile.leave();
      }
    });

    it('offers people at the provider beside the e-mail field, which still takes any address', async () => {
      await page.goto('/login?provider=demo');
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width: 320, height: 640 });
        expect(await accessibilityViolations(page)).toEqual([]);
        expect(await overflowing(page)).toEqual([]);
      }
      await button(/^Nora Newcomer/).click();
      await page.getByRole('heading', { name: 'Enroll your security key' }).waitFor();
      await page.goto('/login?provider=demo');
      await page.getByLabel('E-mail').fill('new@elsewhere.example');
      await button('Sign in').click();
      await page.getByText('new@elsewhere.example').first().waitFor();
    });

    it('walks the engineer through an application that shows the claims', async () => {
      const profile = await openProfile(browser, running.baseUrl);
      await profile.page.goto('/demo/engineer');
      await profile.page.getByRole('link', { name: 'Continue as Erin Engineer' }).click();
      await profile.page.getByRole('button', { name: 'Use your security key' }).click();
      await arrives(profile.page, '/account');
      await profile.page.goto('/demo/engineer');
      await profile.page.getByRole('link', { name: 'Open the demo application' }).click();
      await profile.page.getByRole('link', { name: 'Sign in with your security key' }).click();
      await profile.page.getByText('You are signed in as erin.engineer@acme.example').waitFor();
      expect(await profile.page.locator('dl').textContent()).toContain('hardware_verified');
      expect(await accessibilityViolations(profile.page)).toEqual([]);
      await profile.page.setViewportSize({ width: 320, height: 640 });
      expect(await overflowing(profile.page)).toEqual([]);
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    });

    it('walks the admin to the members, as an admin', async () => {
      const profile = await openProfile(browser, running.baseUrl);
      await profile.page.goto('/demo/admin');
      await profile.page.getByRole('link', { name: 'Continue as Alex Admin' }).click();
      await profile.page.getByRole('button', { name: 'Use your security key' }).click();
      await arrives(profile.page, '/admin');
      await profile.page.goto('/demo/admin');
      await profile.page.getByRole('link', { name: 'Members' }).click();
      await profile.page.getByText('lee.leaver@acme.example').first().waitFor();
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    });

    it('copies the commands of a tour by the keyboard alone at 390 pixels', async () => {
      const profile = await openProfile(browser, running.baseUrl);
      await profile.page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await profile.page.setViewportSize({ width: 390, height: 844 });
      await profile.page.goto('/demo/engineer');
      await profile.page.locator('[data-copy]:visible').first().waitFor();
      await tabTo(profile.page, '[data-copy]');
      await profile.page.keyboard.press('Enter');
      await profile.page.getByRole('status').filter({ hasText: 'Copied.' }).waitFor();
      const command = await profile.page.locator('[data-command]').first().textContent();
      expect(await profile.page.evaluate('navigator.clipboard.readText()')).toBe(command);
      expect(await accessibilityViolations(profile.page)).toEqual([]);
      expect(await overflowing(profile.page)).toEqual([]);
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    });

    it('walks the operator to the health of the service', async () => {
      const profile = await openProfile(browser, running.baseUrl);
      await profile.page.goto('/demo/operator');
      await profile.page.getByRole('link', { name: 'Readiness' }).click();
      expect(await profile.page.textContent('body')).toContain('"status":"ready"');
      await profile.leave();
    });

    it('shows a leaver’s session, certificate and application end within seconds, and the audit event', async () => {
      const profile = await openProfile(browser, running.baseUrl);
      const leaver = profile.page;
      await leaver.goto('/login?redirect_to=/demo');
      await leaver.getByRole('button', { name: 'lee.leaver@acme.example' }).click();
      await arrives(leaver, '/demo');
      await leaver.goto(await applicationUrl());
      await leaver.getByRole('link', { name: 'Sign in with your security key' }).click();
      await leaver.getByText('You are signed in as lee.leaver@acme.example').waitFor();

      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto('/demo/leaver');
      await page.locator('form[data-act="leave"] button:enabled').waitFor();
      await tabTo(page, 'form[data-act="leave"] button');
      await page.keyboard.press('Enter');
      for (const kind of KINDS) {
        await page.locator(`[data-access="${kind}"][data-open="false"]`).waitFor();
      }
      const ofApplication = page.locator('[data-access="application"]');
      expect(await ofApplication.textContent()).toMatch(
        /^Ended by back-channel logout after \d+(?:\.\d{1,3})? s$/,
      );
      await page
        .locator('[data-events]')
        .getByText('The identity provider deleted the member lee.leaver@acme.example')
        .first()
        .waitFor();
      const { workday } = await live();
      for (const kind of KINDS) {
        expect([kind, workday.access[kind]?.endedAfter ?? 99]).toEqual([kind, expect.any(Number)]);
        expect(workday.access[kind]?.endedAfter ?? 99, kind).toBeLessThan(15);
      }
      // the page of the application changes without a reload
      await leaver.getByRole('heading', { name: 'Access ended' }).waitFor();
      await leaver.getByText('The service told this application at').waitFor();
      await leaver.goto('/account');
      expect(new URL(leaver.url()).pathname).toBe('/login');
      expect(visitor.pageErrors).toEqual([]);
      await profile.leave();
    });

    it('brings the leaver back, for the next visitor', async () => {
      await page.goto('/demo/leaver');
      await page.locator('form[data-act="return"] button:enabled').waitFor();
      await tabTo(page, 'form[data-act="return"] button');
      await page.keyboard.press('Enter');
      for (const kind of KINDS) {
        await page.locator(`[data-access="${kind}"][data-open="true"]`).waitFor();
      }
      expect(visitor.pageErrors).toEqual([]);
    });

    it('lets a leaver come back once when ten presses arrive together', async () => {
      const press = (act: string) =>
        new Client(running.baseUrl).post(`/demo/leaver/${act}`, undefined);
      expect((await press('leave')).json.workday.isEmployed).toBe(false);
      const answers = await Promise.all(Array.from({ length: 10 }, () => press('return')));
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
      expect((await live()).workday).toMatchObject({
        isEmployed: true,
        access: { session: { isOpen: true }, certificate: { isOpen: true } },
      });
    });

    it('shows its pages without JavaScript, with the buttons off', async () => {
      const context = await browser.newContext({
        baseURL: running.baseUrl,
        javaScriptEnabled: false,
      });
      const plain = await context.newPage();
      for (const path of PAGES) {
        await plain.goto(path);
        expect(await plain.locator('main h1').count(), path).toBe(1);
      }
      expect(await plain.locator('noscript p').isVisible()).toBe(true);
      expect(await plain.locator('form[data-act] button:enabled').count()).toBe(0);
      expect(await plain.locator('[data-access][data-open="true"]').count()).toBe(KINDS.length);
      await context.close();
    });
  });

  /** Returns the URL of the demo application: a link on the page `/demo/engineer`. */
  async function applicationUrl(): Promise<string> {
    const { links } = await stepsOf('engineer');
    return links.find((href) => href.startsWith('http://127.0.0.1')) ?? '';
  }
});
