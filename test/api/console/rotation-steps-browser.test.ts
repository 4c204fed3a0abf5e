import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { startBrowser } from '../../support/browser.js';
import { newAddress } from '../../support/client.js';
import { openAs, openWithoutScripts } from '../../support/console.js';
import '../../support/full-scale-only.js';
import { orgApi } from '../../support/org-api.js';
import { checkPage } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';

/**
 * For each step that the page of a rotation can show as the current one: an element that only this
 * step has.
 */
const STEPS = {
  make: 'form[data-secret] button',
  wait: '[data-unused]',
  end: '[aria-current="step"] form[data-send^="DELETE"] button',
  done: 'a[href="/admin/scim-tokens"].button',
} as const;

requires('chromium').describe('each step of the rotation of a SCIM token in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let admin: EnrolledUser;
  let path: string;
  let old: { id: string; token: string };
  let next: { id: string; token: string };
  beforeAll(async () => {
    app = await startTestApp();
    admin = await app.enrolled('ada@rotation.example');
    browser = await startBrowser();
    old = await made({ description: 'Okta' });
    path = `/admin/scim-tokens/${old.id}/rotate`;
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const made = async (body: object) =>
    (await orgApi(admin.client, 'POST', '/scim-tokens', body)).json as {
      id: string;
      token: string;
    };

  /**
   * Moves the rotation to each step from the one before, by the requests of the admin or of the
   * identity provider.
   */
  const REACHED: Readonly<Record<keyof typeof STEPS, () => Promise<void>>> = {
    make: async () => undefined,
    wait: async () => {
      next = await made({ description: 'Okta, next', replaces: old.id });
    },
    end: async () => {
      const headers = { authorization: `Bearer ${next.token}` };
      await app.client().get('/scim/v2/Users', { address: newAddress(), headers });
    },
    done: async () => {
      await orgApi(admin.client, 'DELETE', `/scim-tokens/${old.id}`);
    },
  };

  it.each(Object.keys(STEPS) as (keyof typeof STEPS)[])(
    'is accessible and small on every screen, and shown without JavaScript: %s',
    async (step) => {
      await REACHED[step]();
      const profile = await openAs(browser, app, admin);
      await checkPage(profile, path, async (page: Page) => {
        await page.locator(STEPS[step]).first().waitFor();
        await page.evaluate(
          'for (const one of document.querySelectorAll("details")) one.open = true',
        );
      });
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
      const plain = await openWithoutScripts(browser, app, admin.client);
      await plain.goto(path);
      await plain.locator(STEPS[step]).first().waitFor();
      expect(await plain.locator('form[data-send] button:enabled').count()).toBe(0);
      await plain.context().close();
    },
  );
});
