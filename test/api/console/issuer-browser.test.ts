import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { startBrowser } from '../../support/browser.js';
import { HOSTILE, KeyboardWalk, openAs, openWithoutScripts } from '../../support/console.js';
import '../../support/full-scale-only.js';
import {
  atLabel,
  claimedBy,
  issuerOf,
  jwksAt,
  startDocumentKeyGround,
  type DocumentKeyGround,
} from '../../support/issuers.js';
import { orgApi } from '../../support/org-api.js';
import { checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';

const PAGE = '/admin/settings';
const ROTATE = 'form[data-send$="/issuer/rotate"]';
const RELEASE = 'form[data-send="DELETE /api/v1/org/issuer"]';

requires('chromium', 'moto').describe('the issuer of an organization in Chromium', () => {
  let ground: DocumentKeyGround;
  let app: TestApp;
  let browser: Browser;
  beforeAll(async () => {
    ground = await startDocumentKeyGround();
    app = await startTestApp({ environment: ground.environment });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    await ground.close();
  });

  let organizations = 0;
  const newAdmin = (): Promise<EnrolledUser> =>
    app.enrolled(`ada@issuer-page-${(organizations += 1)}.example`);
  const kidsOf = async (label: string) => (await jwksAt(app, label)).keys.map(({ kid }) => kid);

  it('is claimed, activated, rotated, rotated in an emergency and released by keyboard alone at 390 px', async () => {
    const admin = await newAdmin();
    const profile = await openAs(browser, app, admin);
    const { page, pageErrors } = profile;
    const walk = await KeyboardWalk.begin(page, PAGE);
    await walk.fill('#label', 'by-keyboard');
    await walk.press('form[data-send="POST /api/v1/org/issuer"] button');
    await page.getByText('The label is claimed.').waitFor();
    expect(await page.getByText(issuerOf(app, 'by-keyboard')).count()).toBe(1);
    const [first] = await kidsOf('by-keyboard');
    await page.getByRole('rowheader', { name: first ?? 'none' }).waitFor();

    await walk.press('details:has(form[data-send^="PATCH"]) > summary');
    await walk.press('form[data-send="PATCH /api/v1/org/issuer"] button');
    await page.getByText('The issuer is activated.').waitFor();
    expect(await page.locator('[data-issuer-active="true"]').count()).toBe(1);

    await walk.press(`details:has(${ROTATE} [value=false]) > summary`);
    await walk.press(`${ROTATE}:has([value=false]) button`);
    await page.getByText('The next key is published.').waitFor();
    expect(await kidsOf('by-keyboard')).toHaveLength(2);
    await page.getByText('The next key is published already').waitFor({ state: 'attached' });

    await walk.press(`details:has(${ROTATE} [value=true]) > summary`);
    await page.getByText('Every key of the issuer ends at once: 2 now.').waitFor();
    await walk.press(`${ROTATE}:has([value=true]) button`);
    await page.getByText('Every earlier key has ended. A new one signs.').waitFor();
    const last = await kidsOf('by-keyboard');
    expect(last).toHaveLength(1);
    expect(last).not.toContain(first);

    await walk.press(`details:has(${RELEASE}) > summary`);
    await walk.press(`${RELEASE} button`);
    await page.getByText('The label is released. The issuer and its keys have ended.').waitFor();
    walk.print('claim, activate, rotate and release an issuer');
    await page.locator('#label').waitFor();
    expect((await orgApi(admin.client, 'GET', '/issuer')).json.issuer).toBeNull();
    expect((await atLabel(app, 'by-keyboard', 'GET /oauth/jwks')).status).toBe(421);
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('is not claimed under a hostile, a reserved or a taken label, and the page says why', async () => {
    await claimedBy(app, 'eve@issuer-taken.example', { label: 'taken' });
    const admin = await newAdmin();
    const profile = await openAs(browser, app, admin);
    const { page } = profile;
    await page.setViewportSize({ width: 320, height: 640 });
    await page.goto(PAGE);
    const form = page.locator('form[data-send="POST /api/v1/org/issuer"]');
    const field = page.locator('#label');
    for (const [label, notice] of [
      [`<img src=x onerror=alert(1)>`, 'must be 3 to 63 characters'],
      ['acme\u202e\u2066', 'must be 3 to 63 characters'],
      ['xn--acme', 'must be 3 to 63 characters'],
      [HOSTILE, 'must be 3 to 63 characters'],
      ['admin', 'reserved'],
      ['taken', 'taken'],
    ] as const) {
      await field.evaluate((input: { removeAttribute(name: string): void }) =>
        input.removeAttribute('maxlength'),
      );
      await field.fill(label);
      await form.getByRole('button').click();
      await form.locator('[data-status][data-kind="error"]', { hasText: notice }).waitFor();
      expect(await page.locator('main img').count()).toBe(0);
      expect(await overflowing(page)).toEqual([]);
    }
    expect((await orgApi(admin.client, 'GET', '/issuer')).json.issuer).toBeNull();
    await profile.leave();
  });

  it('is accessible and small on every screen: the claim, one key, and the keys of a rotation', async () => {
    const admin = await newAdmin();
    await check(admin, '#label');
    const label = 'a'.repeat(63);
    expect((await orgApi(admin.client, 'POST', '/issuer', { label })).status).toBe(201);
    await check(admin, `${ROTATE} [value=false]`);
    await orgApi(admin.client, 'POST', '/issuer/rotate', {});
    await orgApi(admin.client, 'PATCH', '/issuer', { active: true });
    await check(admin, '[data-issuer-active="true"]');
  });

  /** Checks the page with all its `details` elements open, after an element has appeared. */
  async function check(admin: EnrolledUser, selector: string): Promise<void> {
    const profile = await openAs(browser, app, admin);
    await checkPage(profile, PAGE, async (page) => {
      await page.locator(selector).waitFor({ state: 'attached' });
      await page.evaluate(
        'for (const one of document.querySelectorAll("details")) one.open = true',
      );
    });
    await profile.leave();
  }

  it('is shown without JavaScript, which says that a change needs it', async () => {
    const { client } = await claimedBy(app, 'ada@issuer-plain.example', { label: 'plain' });
    const page = await openWithoutScripts(browser, app, client);
    await page.goto(PAGE);
    await page.getByText(issuerOf(app, 'plain')).waitFor();
    const [kid] = await kidsOf('plain');
    await page.getByRole('rowheader', { name: kid ?? 'none' }).waitFor();
    expect(await page.locator('noscript').textContent()).toContain('needs JavaScript');
    expect(await page.locator('form[data-send] button:enabled').count()).toBe(0);
    await page.context().close();
  });
});
