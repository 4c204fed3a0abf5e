import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import { KeyboardWalk, openAs, openWithoutScripts } from '../../support/console.js';
import { checkPage, tabTo } from '../../support/page-checks.js';
import { enrollWith, passFor, passGround, signedIn } from '../../support/passes.js';
import { requires } from '../../support/programs.js';
import { count } from '../../support/rows.js';
import '../../support/full-scale-only.js';

requires('chromium').describe('a lost key in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;
  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
    visitor = await openProfile(browser, app.baseUrl);
    ({ page } = visitor);
  });
  beforeEach(() => visitor.move());
  afterAll(async () => {
    await visitor.leave();
    await browser.close();
    await app.close();
  });

  it('is replaced on /enroll with the pass, by keyboard alone at 390 px', async () => {
    const { ada, ids, domain } = await passGround(app, 'browser-pass.example');
    const pass = await passFor(ada, ids.bob);
    await visitor.plugIn(app.newKey());
    const sign = new URLSearchParams({
      provider: 'demo',
      login_hint: `bob@${domain}`,
      redirect_to: '/enroll',
    });
    await page.goto(`/login?${sign.toString()}`);
    await checkPage(visitor, '/enroll', (open) => open.getByLabel('Re-enrollment pass').waitFor());

    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/enroll');
    await tabTo(page, '#pass');
    await page.keyboard.type('svc_pass_wrong');
    await page.keyboard.press('Enter');
    const said = page.locator('form [data-status]');
    await said.filter({ hasText: 'not valid for your account' }).waitFor();
    visitor.pageErrors.length = 0; // Chromium logs the 403 as an error, which is expected

    await page.locator('#pass').focus();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type(pass);
    await tabTo(page, 'form.ceremony button');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname !== '/enroll');
    expect(page.url()).not.toContain(pass);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [ids.bob])).toBe(1);
    await page.goto('/account/keys');
    expect(await page.locator('[data-key]').count()).toBe(1);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('is ended by an admin on the page of the member, by keyboard alone at 390 px', async () => {
    const { ada, adaKey, ids, domain } = await passGround(app, 'console-pass.example');
    const admin = await openAs(browser, app, { client: ada, key: adaKey });
    const path = `/admin/members/${ids.bob}`;
    await checkPage(admin, path, (open) => open.locator('[data-act="give-pass"]').waitFor());
    const walk = await KeyboardWalk.begin(admin.page, path);
    await walk.press('[data-act="give-pass"] summary');
    const ends = await admin.page.locator('[data-act="give-pass"] [data-ends]').textContent();
    expect(ends).toContain('1 security key');
    await walk.press('[data-act="give-pass"] button[type="submit"]');
    const shown = admin.page.locator('#new-pass').filter({ hasText: 'svc_pass_' });
    await shown.waitFor();
    const pass = (await shown.textContent()) ?? '';
    expect(await admin.page.locator('#new-pass-expiry').textContent()).toMatch(/^\d{4}-.+Z$/);
    expect(admin.page.url()).not.toContain(pass);
    walk.print('give a member a pass');

    await admin.page.goto(path);
    await admin.page.locator('[data-pass="valid"]').waitFor();
    expect(await admin.page.content()).not.toContain(pass);
    await checkPage(admin, path, (open) => open.locator('[data-pass="valid"]').waitFor());
    const back = await signedIn(app, `bob@${domain}`);
    expect((await enrollWith(app, back, app.newKey(), pass)).status).toBe(200);

    await passFor(ada, ids.bob);
    const again = await KeyboardWalk.begin(admin.page, path);
    await again.press('[data-act="withdraw-pass"] button');
    await admin.page.locator('[data-pass="withdrawn"]').waitFor();
    again.print('withdraw a pass');
    expect(admin.pageErrors).toEqual([]);
    await admin.leave();
  });

  it('the page without JavaScript says what it needs', async () => {
    const { ada, ids, domain } = await passGround(app, 'browser-plain.example');
    await passFor(ada, ids.bob);
    const plain = await openWithoutScripts(browser, app, await signedIn(app, `bob@${domain}`));
    await plain.goto('/enroll');
    await plain.locator('noscript p').waitFor();
    expect(await plain.getByLabel('Re-enrollment pass').isVisible()).toBe(true);
    expect(await plain.getByRole('button', { name: 'Enroll this key' }).isDisabled()).toBe(true);
    await plain.context().close();
  });
});
