import { expect, it } from 'vitest';
import type { EnrolledUser } from '../../support/app.js';
import type { BrowserProfile } from '../../support/browser.js';
import { asProgram, madeApiToken } from '../../support/api-tokens.js';
import { newAddress } from '../../support/client.js';
import { startEventServer } from '../../support/event-receivers.js';
import {
  consoleSetUp,
  HOSTILE,
  KeyboardWalk,
  openAs,
  openWithoutScripts,
} from '../../support/console.js';
import '../../support/full-scale-only.js';
import { touchedAgo } from '../../support/keys.js';
import { orgApi } from '../../support/org-api.js';
import { checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

const SECRET = /^svc_scim_[\w-]{43}$/;

requires('chromium').describe('the pages of SCIM tokens in Chromium', () => {
  const pages = consoleSetUp('tokens');

  const made = async ({ client }: EnrolledUser, description = 'Okta') =>
    (await orgApi(client, 'POST', '/scim-tokens', { description })).json as {
      id: string;
      token: string;
    };

  /** Sends a SCIM request with a token, as the identity provider does. */
  const scim = (token: string) =>
    pages.app.client().get('/scim/v2/Users', {
      address: newAddress(),
      headers: { authorization: `Bearer ${token}` },
    });

  it('makes a token by keyboard alone at 390 px, says what the first one switches, and shows it once', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    await touchedAgo(pages.app, admin.email, 301);
    const walk = await KeyboardWalk.begin(page, '/admin/scim-tokens');
    await page.locator('[data-first-token]').waitFor();
    await walk.fill('#description', 'Okta production');
    await walk.press('form[data-secret] button');
    await page.locator('[data-result]').waitFor();
    walk.print('make a SCIM token');
    expect(walk.steps.length).toBeLessThanOrEqual(5);

    const token = (await page.locator('[data-value]').textContent()) ?? '';
    expect(token).toMatch(SECRET);
    expect(await page.locator('#scim-url').textContent()).toBe(`${pages.app.baseUrl}/scim/v2`);
    await page.getByText('From now on only SCIM makes new members').waitFor();
    expect((await scim(token)).status).toBe(200);

    await walk.press('[data-onward]');
    await page.getByRole('rowheader', { name: 'Okta production' }).waitFor();
    expect(await page.locator('[data-first-token]').count()).toBe(0);
    expect(page.url()).toBe(`${pages.app.baseUrl}/admin/scim-tokens`);
    await expectNowhere(admin, token);
    // Chromium logs the 401 that demands a touch as an error.
    expect(pageErrors.filter((error) => !error.includes(' 401 '))).toEqual([]);
    await admin.profile.leave();
  });

  /**
   * Checks that a secret is not in the page, its URL, its history or storage, or in the log of the
   * service.
   */
  async function expectNowhere({ profile }: { profile: BrowserProfile }, secret: string) {
    const { page } = profile;
    const part = secret.replace(/^svc_[a-z]+_/, '');
    for (const visit of [() => page.reload(), () => page.goBack(), () => page.goForward()]) {
      await visit();
      expect(await page.content()).not.toContain(part);
      expect(page.url()).not.toContain(part);
    }
    const kept =
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, document.cookie])';
    expect(await page.evaluate(kept)).not.toContain(part);
    expect(pages.app.log.join('')).not.toContain(part);
  }

  it('rotates a token by keyboard alone at 390 px, while the identity provider begins to use the new one', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const old = await made(admin);
    await scim(old.token);
    const walk = await KeyboardWalk.begin(page, '/admin/scim-tokens');
    await walk.press('a[href$="/rotate"]');
    await page.waitForURL(`**/admin/scim-tokens/${old.id}/rotate`);
    await walk.press('form[data-secret] button');
    await page.locator('[data-result]').waitFor();
    const token = (await page.locator('[data-value]').textContent()) ?? '';
    expect(token).toMatch(SECRET);
    await walk.press('[data-onward]');

    await page.locator('[data-unused]').waitFor();
    await page.getByText('Waiting for the first use of the new token.').waitFor();
    expect([(await scim(old.token)).status, (await scim(token)).status]).toEqual([200, 200]);
    await page.getByText('The new token is in use. You can end the old one.').waitFor();
    expect(await page.locator('[data-unused]').count()).toBe(0);

    await walk.press(`form[data-send$="${old.id}"] button`);
    await page.getByText('The old token has ended. The rotation is complete.').first().waitFor();
    walk.print('rotate a SCIM token');
    expect(walk.steps.length).toBeLessThanOrEqual(6);
    expect([(await scim(old.token)).status, (await scim(token)).status]).toEqual([401, 200]);
    await expectNowhere(admin, token);
    expect(pageErrors).toEqual([]);
    await admin.profile.leave();
  });

  it('survives a closed tab: the step comes from the database, with and without JavaScript', async () => {
    const admin = await pages.newAdmin();
    const old = await made(admin);
    const path = `/admin/scim-tokens/${old.id}/rotate`;
    await orgApi(admin.client, 'POST', '/scim-tokens', { description: 'Next', replaces: old.id });
    const plain = await openWithoutScripts(pages.browser, pages.app, admin.client);
    const step = () => plain.locator('[aria-current="step"] h2').textContent();
    await plain.goto('/admin/scim-tokens');
    await plain.getByRole('link', { name: 'Continue the rotation' }).click();
    expect(await step()).toBe('2. Wait until the new token is used');
    await rows(
      pages.app.dataSource,
      'UPDATE scim_tokens SET last_used_at = now() WHERE replaces = $1',
      [old.id],
    );
    await plain.getByRole('link', { name: 'Look again' }).click();
    expect(await step()).toBe('3. End the old token');
    expect(await plain.locator('noscript').textContent()).toContain('needs JavaScript');
    await orgApi(admin.client, 'DELETE', `/scim-tokens/${old.id}`);
    await plain.goto(path);
    await plain.getByText('The rotation is complete.').waitFor();
    await plain.context().close();
    await admin.profile.leave();
  });

  it('lets an admin who did not copy the new token end it and make another one', async () => {
    const admin = await pages.newAdmin();
    const { page } = admin.profile;
    const old = await made(admin);
    const next = { description: 'Lost', replaces: old.id };
    const { id: lost } = (await orgApi(admin.client, 'POST', '/scim-tokens', next)).json;
    await page.goto(`/admin/scim-tokens/${old.id}/rotate`);
    await page.getByText('I did not copy the new token').click();
    await page.getByRole('button', { name: 'End the new token' }).click();
    await page.getByText('The new token has ended. Make another one.').waitFor();
    await page.getByRole('button', { name: 'Make the new token' }).waitFor();
    const { tokens } = (await orgApi(admin.client, 'GET', '/scim-tokens')).json;
    expect((tokens as { id: string }[]).map(({ id }) => id)).toEqual([old.id]);
    expect(lost).not.toBe(old.id);
    await admin.profile.leave();
  });

  it('ends a token by keyboard alone', async () => {
    const admin = await pages.newAdmin();
    const { page } = admin.profile;
    const { token } = await made(admin);
    const walk = await KeyboardWalk.begin(page, '/admin/scim-tokens');
    await walk.press('[data-token] summary');
    await walk.press('[data-token] form button');
    await page.getByText('The token has ended.').waitFor();
    expect((await scim(token)).status).toBe(401);
    await admin.profile.leave();
  });

  it('is accessible and small on every screen: the list, and each step of a rotation', async () => {
    const admin = await pages.newAdmin();
    const { profile } = admin;
    await checkPage(profile, '/admin/scim-tokens');
    const old = await made(admin);
    await rows(
      pages.app.dataSource,
      `UPDATE scim_tokens SET expires_at = now() + interval '9 days'`,
    );
    const path = `/admin/scim-tokens/${old.id}/rotate`;
    await checkPage(profile, '/admin/scim-tokens', (page) =>
      page.locator('[data-expiring]').waitFor(),
    );
    await admin.profile.leave();
    const second = await openAs(pages.browser, pages.app, admin);
    await checkPage(second, path);
    await orgApi(admin.client, 'POST', '/scim-tokens', { description: 'Next', replaces: old.id });
    await checkPage(second, path, (page) => page.locator('[data-unused]').waitFor());
    expect(second.pageErrors).toEqual([]);
    await second.leave();
  });

  const asked = (token: string) => asProgram(pages.app, token, 'GET', 'audit-events');

  it('makes and rotates an API token by keyboard alone at 390 px, and shows each secret once', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const walk = await KeyboardWalk.begin(page, '/admin/api-tokens');
    await walk.fill('#name', 'SIEM');
    await walk.press('input[value="audit:read"]', 'Space');
    await walk.press('form[data-secret] button');
    await page.locator('[data-result]:not([hidden])').waitFor();
    const old = (await page.locator('#new-token').textContent()) ?? '';
    expect(old).toMatch(/^svc_api_[\w-]{43}$/);
    expect((await asked(old)).status).toBe(200);
    await walk.press('[data-onward]');
    await page.locator('[data-token]').waitFor();
    await walk.press('a[href$="/rotate"]');
    await page.waitForURL('**/rotate');
    await walk.press('form[data-secret] button');
    await page.locator('[data-result]:not([hidden])').waitFor();
    const token = (await page.locator('#new-token').textContent()) ?? '';
    expect(token).not.toBe(old);
    await walk.press('[data-onward]');
    await page.getByText('Waiting for the first use of the new token.').waitFor();
    expect((await asked(token)).status).toBe(200);
    await page.getByText('The new token is in use. You can end the old one.').waitFor();
    const forms = page.locator('form[data-send^="DELETE"]');
    await walk.press(`form[data-send="${await forms.last().getAttribute('data-send')}"] button`);
    await page.getByText('The old token has ended. The rotation is complete.').first().waitFor();
    expect([(await asked(old)).status, (await asked(token)).status]).toEqual([401, 200]);
    await expectNowhere(admin, token);
    expect(pageErrors).toEqual([]);
    await admin.profile.leave();
  });

  it('makes the successor of an API token without its maker in one press, and is accessible and small', async () => {
    const admin = await pages.newAdmin();
    const { profile } = admin;
    await checkPage(profile, '/admin/api-tokens');
    const lost = await madeApiToken(admin.client, ['audit:read'], { name: 'lost' });
    await madeApiToken(admin.client, ['members:read'], { name: 'kept' });
    await rows(
      pages.app.dataSource,
      'UPDATE api_tokens SET revoked_at = now(), is_orphan = true WHERE id = $1',
      [lost.id],
    );
    await checkPage(profile, '/admin/api-tokens', (page) => page.locator('[data-lost]').waitFor());
    await profile.leave();
    const second = await openAs(pages.browser, pages.app, admin);
    const { page } = second;
    const path = `/admin/api-tokens/${lost.id}/rotate`;
    await checkPage(second, path);
    await page.goto('/admin/api-tokens');
    await page.getByRole('button', { name: 'Make the successor' }).click();
    const place = page.locator(`#successor-${lost.id}`);
    await place.waitFor();
    expect((await asked((await place.textContent()) ?? '')).status).toBe(200);
    await page.goto('/admin/api-tokens');
    expect(await page.locator('[data-lost]').count()).toBe(0);
    expect(second.pageErrors).toEqual([]);
    await second.leave();
  });

  it('makes, tests, pauses and removes an event receiver by keyboard alone at 390 px, and tells of it until that is read', async () => {
    const admin = await pages.newAdmin();
    const { page } = admin.profile;
    const server = await startEventServer();
    const walk = await KeyboardWalk.begin(page, '/admin/event-receivers');
    await walk.fill('#name', 'SIEM');
    await walk.fill('#url', server.uri);
    await walk.press('form[data-secret] button');
    await page.locator('[data-result]').waitFor();
    const secret = (await page.locator('[data-value]').textContent()) ?? '';
    expect(secret).toMatch(/^whsec_[\w+/]{43}=$/);
    await walk.press('[data-onward]');
    await page.locator('[data-figure="sent"]').waitFor();
    await walk.press('form[data-send$="/test"] button');
    await page.getByText('The test event is in the log.').first().waitFor();
    await expect.poll(() => server.received.length).toBe(2);
    await walk.press('form[data-done="The receiver is paused."] button');
    await page.locator('[data-paused]').waitFor();
    walk.print('make, test and pause an event receiver');
    await checkPage(admin.profile, page.url());
    await checkPage(admin.profile, '/admin/event-receivers');
    await page.goto('/account');
    await page.locator('[data-notices]').waitFor();
    await checkPage(admin.profile, '/account');
    await page.getByRole('button', { name: 'I have read this' }).click();
    await page.waitForURL('**/account');
    expect(await page.locator('[data-notices]').count()).toBe(0);
    const { receivers } = (await orgApi(admin.client, 'GET', '/event-receivers')).json;
    await page.goto(`/admin/event-receivers/${(receivers as { id: string }[])[0]?.id}`);
    await page.locator('summary').click();
    await page.locator('form[data-send^="DELETE"] button').click();
    await page.getByText('The receiver is removed.').waitFor();
    await server.close();
    await admin.profile.leave();
  });

  it('shows hostile names as text, and no name breaks the layout at 320 px', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const { id } = await made(admin);
    await rows(
      pages.app.dataSource,
      'UPDATE scim_tokens SET description = $2, created_by_email = $2 WHERE id = $1',
      [id, HOSTILE],
    );
    await orgApi(admin.client, 'POST', '/scim-tokens', { description: 'Next', replaces: id });
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of ['/admin/scim-tokens', `/admin/scim-tokens/${id}/rotate`]) {
      await page.goto(path);
      expect(await page.getByText(HOSTILE.slice(0, 28)).count()).toBeGreaterThan(0);
      expect(await page.locator('main img').count()).toBe(0);
      expect(await overflowing(page)).toEqual([]);
    }
    expect(pageErrors).toEqual([]);
    await admin.profile.leave();
  });
});
