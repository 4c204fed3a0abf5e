import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser, openProfile, type BrowserProfile } from '../support/browser.js';
import { requires } from '../support/programs.js';
import { startSecureApp, type SecureApp } from '../support/secure-app.js';

requires('chromium').describe('the session cookies in Chromium, over https', () => {
  let secure: SecureApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  beforeAll(async () => {
    secure = await startSecureApp();
    browser = await startBrowser();
    visitor = await openProfile(browser, secure.baseUrl);
  });
  afterAll(async () => {
    await visitor.leave();
    await browser.close();
    await secure.app.close();
  });

  const sessionCookies = async () =>
    (await visitor.page.context().cookies())
      .filter(({ name }) => name.endsWith('svc_session'))
      .toSorted((one, other) => one.name.localeCompare(other.name));
  const heading = (name: RegExp) => visitor.page.getByRole('heading', { name });
  const plant = (value: string) =>
    visitor.page
      .context()
      .addCookies([{ name: 'svc_session', value, url: secure.baseUrl, httpOnly: true }]);

  it('10.9 are both set with one value, survive a planted one, and are both deleted by the logout', async () => {
    const { page } = visitor;
    await visitor.plugIn(secure.app.newKey());
    await page.goto('/login?provider=demo&login_hint=grace%40host.example');
    await page.getByRole('button', { name: 'Enroll this key' }).click();
    await heading(/^Your key is enrolled/).waitFor();
    const [first, second] = await sessionCookies();
    expect([first?.name, second?.name]).toEqual(['__Host-svc_session', 'svc_session']);
    expect(second?.value).toBe(first?.value);
    for (const { domain, path, secure: isSecure, httpOnly } of await sessionCookies()) {
      expect([domain, path, isSecure, httpOnly]).toEqual(['localhost', '/', true, true]);
    }

    const planted = (await secure.loggedIn('mallory@host.example')).split('=')[1] ?? '';
    await plant(planted);
    await page.goto('/');
    await heading(/^Hello, Grace/).waitFor();

    await page.getByRole('button', { name: 'Log out' }).click();
    await page.waitForURL('/');
    expect(await sessionCookies()).toEqual([]);

    await plant(planted);
    const answer = await page.goto('/account/keys');
    expect(new URL(answer?.url() ?? '').pathname).toBe('/login');
  });
});
