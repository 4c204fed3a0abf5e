import { globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../support/browser.js';
import { newAddress, type Client } from '../support/client.js';
import '../support/full-scale-only.js';
import { GUIDES } from '../support/guide.js';
import { idOf, orgApi } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { smallPng } from '../support/small-png.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const COMMITTED = join(GUIDES, 'screenshots');
/**
 * True if the run replaces the images of the guides (`SVC_SCREENSHOTS=1`). Otherwise it writes them
 * to a temporary folder.
 */
const isForGuides = (process.env['SVC_SCREENSHOTS'] ?? '') !== '';
/**
 * Returns the names of the PNG images in a folder. Images in its subfolders belong to another test.
 */
const imagesOf = (folder: string) =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.png'))
    .toSorted();
/** The largest size of an image in bytes. */
const LARGEST = 80 * 1024;
const SHOTS = ['login', 'enroll', 'account', 'members', 'member', 'scim-tokens', 'audit'] as const;

/** The AAGUIDs of two real models, so that pages show the names of these models. */
const YUBIKEY_5_NFC = 'd7781e5d-e353-46aa-afe2-3ca49f13332a';
const SECURITY_KEY_NFC = 'a4e9fc6d-4cbe-4758-b8ba-37598bb5bbaa';

/** The names of made-up members, whom the test provisions by SCIM. */
const PEOPLE = ['Grace Hopper', 'Alan Turing', 'Katherine Johnson', 'Edsger Dijkstra'];
const addressOf = (name: string) => `${name.toLowerCase().replace(' ', '.')}@acme.example`;

describe('the images of the guides', () => {
  it('each image that a guide shows is one that the tests take, and the reverse', () => {
    const shown = globSync('**/*.md', { cwd: GUIDES }).flatMap((page) =>
      [...readFileSync(resolve(GUIDES, page), 'utf8').matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(
        ([, image = '']) => image,
      ),
    );
    // `SVC_SCREENSHOTS=1 npx vitest run test/guides/screenshots.test.ts` writes the missing images.
    expect([...new Set(shown)].toSorted()).toEqual(
      SHOTS.map((name) => `screenshots/${name}.png`).toSorted(),
    );
    expect(imagesOf(COMMITTED)).toEqual(SHOTS.map((name) => `${name}.png`).toSorted());
    const large = imagesOf(COMMITTED).filter(
      (file) => statSync(join(COMMITTED, file)).size > LARGEST,
    );
    expect(large).toEqual([]);
  });
});

requires('chromium').describe('taking the images of the guides', () => {
  let app: TestApp;
  let browser: Browser;
  let profile: BrowserProfile;
  let page: Page;
  let folder: string;
  beforeAll(async () => {
    folder = isForGuides ? COMMITTED : await makeTemporaryDirectory();
    mkdirSync(folder, { recursive: true });
    app = await startTestApp({
      environment: { SVC_RP_NAME: 'Acme', SVC_IDP_DEMO_NAME: 'Acme Workforce' },
    });
    browser = await startBrowser();
    profile = await openProfile(browser, app.baseUrl);
    ({ page } = profile);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    if (!isForGuides) await removeDirectory(folder);
  });

  /** Writes a screenshot of the page, and expects that it is small. */
  async function shoot(name: (typeof SHOTS)[number]): Promise<void> {
    await page.waitForLoadState('networkidle');
    const path = join(folder, `${name}.png`);
    writeFileSync(path, smallPng(await page.screenshot({ animations: 'disabled', caret: 'hide' })));
    expect(statSync(path).size, basename(path)).toBeLessThan(LARGEST);
  }

  /**
   * Makes data that the pages can show: provisioned members, keys, certificates and an application.
   */
  async function fill(admin: Client): Promise<void> {
    const tokens = await Promise.all(
      ['Acme directory', 'Acme directory, next'].map((description, index) =>
        orgApi(admin, 'POST', '/scim-tokens', { description, expires_in_days: 20 + 300 * index }),
      ),
    );
    for (const name of PEOPLE) {
      const made = await app.client().post(
        '/scim/v2/Users',
        {
          schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
          userName: addressOf(name),
          displayName: name,
        },
        {
          address: newAddress(),
          headers: {
            authorization: `Bearer ${String(tokens[0]?.json.token)}`,
            'content-type': 'application/scim+json',
          },
        },
      );
      if (made.status !== 201) throw new Error(made.text);
    }
    for (const [index, name] of PEOPLE.slice(0, 3).entries()) {
      const person = app.client();
      const aaguid = index === 1 ? SECURITY_KEY_NFC : YUBIKEY_5_NFC;
      await person.signIn(addressOf(name));
      await person.enroll(app.newKey({ aaguid }), 'Key ring');
      await person.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    }
  }

  it('an admin’s first hour: login, enrollment, account, members, a member, SCIM tokens, audit log', async () => {
    const key = app.newKey({ aaguid: YUBIKEY_5_NFC });
    await profile.plugIn(key);
    await page.goto('/login');
    await shoot('login');
    await page.goto(`/login?provider=demo&login_hint=ada.lovelace@acme.example`);
    await page.waitForURL('**/enroll**');
    await shoot('enroll');
    await page.getByRole('button', { name: 'Enroll this key' }).click();
    await page.waitForURL('**/enroll/done');

    const admin = app.client();
    const cookies = await page.context().cookies();
    const session = cookies.find(({ name }) => name === 'svc_session');
    admin.setCookie('svc_session', session?.value ?? '');
    await fill(admin);
    await admin.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const member = await idOf(app, addressOf('Grace Hopper'));
    const pages = {
      account: '/account',
      members: '/admin/members',
      member: `/admin/members/${member}`,
      'scim-tokens': '/admin/scim-tokens',
      audit: '/admin/audit',
    } as const;
    for (const [name, path] of Object.entries(pages) as [keyof typeof pages, string][]) {
      const response = await page.goto(path);
      expect(response?.status(), path).toBe(200);
      await shoot(name);
    }
    expect(imagesOf(folder)).toEqual(SHOTS.map((name) => `${name}.png`).toSorted());
    expect(profile.pageErrors).toEqual([]);
  });
});
