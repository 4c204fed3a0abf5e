import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { TestApp } from '../app.js';
import { openProfile } from '../browser.js';

/**
 * Signs a user in with Chromium at a provider, and enrolls a key. Then logs out, and logs in by the
 * provider and the key. Returns the errors that the pages reported.
 *
 * @param atProvider does what the user must do on the provider's page at the first sign-in
 */
export async function expectBrowserJourney(
  app: Pick<TestApp, 'baseUrl' | 'newKey'>,
  browser: Browser,
  slug: string,
  atProvider: (page: Page) => Promise<void>,
): Promise<string[]> {
  const visitor = await openProfile(browser, app.baseUrl);
  const { page } = visitor;
  await visitor.plugIn(app.newKey());
  await page.goto('/login?redirect_to=%2Faccount%2Fkeys');
  await page.getByText(new RegExp(`\\b${slug}\\b`, 'i')).click();
  await atProvider(page);
  await page.waitForURL(`${app.baseUrl}/enroll**`);
  await page.getByRole('button', { name: 'Enroll this key' }).click();
  await page.waitForURL(`${app.baseUrl}/account/keys`);
  await page.goto('/');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.waitForURL(`${app.baseUrl}/`);
  await page.goto(`/login?provider=${slug}&redirect_to=%2Faccount%2Fkeys`);
  await page.waitForURL(`${app.baseUrl}/login**`);
  await page.getByRole('button', { name: 'Use your security key' }).click();
  await page.waitForURL(`${app.baseUrl}/account/keys`);
  expect(await page.locator('[data-key]').count()).toBe(1);
  await visitor.leave();
  return visitor.pageErrors;
}
