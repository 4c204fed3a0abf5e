import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import { newAddress } from '../../support/client.js';
import { recordsOf } from '../../support/csv.js';
import { addKey, keysOf, touchedAgo } from '../../support/keys.js';
import { addMember, idOf } from '../../support/org-api.js';
import { checkPage, overflowing, tabTo } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const DOMAIN = 'console-members.example';
const ADMIN = `ada@${DOMAIN}`;
const PHONE = { width: 390, height: 844 };

const FIPS = {
  aaguid: 'c1f9a0bc-1dd2-404a-b27f-8e29047a43fd',
  model: 'YubiKey 5 FIPS Series with NFC',
} as const;

/**
 * A name that breaks a page unless the page escapes it, isolates its text direction and wraps it.
 */
const HOSTILE = `<img src=x onerror=alert(1)>\u202Egnp.exe\u2066${'W'.repeat(10_000)}`;

requires('chromium').describe('the pages of the members in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;
  let ada: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
    ada = await app.enrolled(ADMIN);
    visitor = await openProfile(browser, app.baseUrl);
    ({ page } = visitor);
    await visitor.plugIn(ada.key);
    await page.goto('/login?redirect_to=%2Fadmin');
    await page.getByRole('button', { name: 'Use your security key' }).click();
    await page.waitForURL('/admin');
  });
  beforeEach(() => visitor.move());
  afterAll(async () => {
    await visitor.leave();
    await browser.close();
    await app.close();
  });

  let people = 0;
  /** Creates a member with a key and an SSH certificate. */
  async function newMember() {
    people += 1;
    const email = `bob-${people}@${DOMAIN}`;
    const user = await app.enrolled(email);
    const body = { public_key: newPublicKeyLine() };
    await user.client.post('/v1/credentials/ssh', body, { address: newAddress() });
    await rows(app.dataSource, 'UPDATE users SET name = $2 WHERE email = $1', [
      email,
      `Bob Nr${people}`,
    ]);
    return { ...user, email, id: await idOf(app, email), name: `Bob Nr${people}` };
  }

  const notice = (text: string | RegExp) =>
    page.locator('[data-page-notice]').filter({ hasText: text });

  /**
   * Moves the focus to an element by the Tab key and presses Enter. Returns the number of pressed
   * keys.
   */
  async function choose(selector: string): Promise<number> {
    const pressed = await tabTo(page, selector);
    await page.keyboard.press('Enter');
    return pressed + 1;
  }

  /**
   * Finds a member from the start page by the keyboard alone. Returns the numbers of steps and of
   * pressed keys.
   */
  async function findMember({ id, email }: { id: string; email: string }) {
    await page.setViewportSize(PHONE);
    await page.goto('/');
    let keys = await choose('nav[aria-label="Main"] a[href="/admin"]');
    await page.waitForURL('/admin');
    keys += await choose('nav.tabs a[href="/admin/members"]');
    await page.waitForURL('/admin/members');
    keys += await tabTo(page, '#q');
    await page.keyboard.type(email);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\?q=/);
    keys += 1 + email.length + (await choose(`a[href="/admin/members/${id}"]`));
    await page.waitForURL(`/admin/members/${id}`);
    return { steps: 4, keys };
  }

  /** Returns true if an element is inside the width of the screen. */
  const isInView = async (element: Locator) => {
    const { x, width } = (await element.boundingBox()) ?? { x: -1, width: 0 };
    return x >= 0 && x + width <= PHONE.width;
  };

  /**
   * Opens the form of an action on the page and submits it, by the keyboard. Returns the number of
   * pressed keys.
   */
  async function act(name: string): Promise<number> {
    const keys = await choose(`[data-act="${name}"] summary`);
    return keys + (await choose(`[data-act="${name}"] button`));
  }

  it('the overview, the list and the page of a member pass every check of a page', async () => {
    const bob = await newMember();
    await addKey(app, bob.client, app.newKey(), 'Spare');
    await checkPage(visitor, '/admin');
    await checkPage(visitor, '/admin/members');
    await checkPage(visitor, '/admin/members?q=bob&keys=several&status=active');
    await checkPage(visitor, `/admin/members/${bob.id}`, async (open) => {
      for (const summary of await open.locator('summary').all()) await summary.click();
    });
    await checkPage(visitor, `/admin/members/${await idOf(app, ADMIN)}`);
    expect(await page.getByText('This is your own account.').count()).toBe(1);
  });

  it('shows the list on the first screen of a phone: the filters fold, and open where one is set', async () => {
    await newMember();
    await page.setViewportSize(PHONE);
    await page.goto('/admin/members');
    const top = (selector: string) =>
      page.locator(selector).evaluate((found) => found.getBoundingClientRect().top);
    expect(await top('tbody tr:first-child')).toBeLessThan(PHONE.height);
    expect(await page.locator('#keys').isVisible()).toBe(false);
    await page.goto('/admin/members?keys=one');
    expect(await page.locator('#keys').isVisible()).toBe(true);
  });

  it('offers the models that someone has, and the chosen one, and downloads who matches with their keys', async () => {
    const [bob, carl] = [await newMember(), await newMember()];
    await rows(app.dataSource, 'UPDATE authenticators SET aaguid = $1 WHERE user_id = $2', [
      FIPS.aaguid,
      bob.id,
    ]);
    await page.setViewportSize(PHONE);
    await page.goto('/admin/members');
    await page.getByText('Filters', { exact: true }).click();
    const models = page.getByLabel('Model of a key').locator('option');
    const unknown = 'A model that is not known';
    expect(await models.allTextContents()).toEqual(['Any', FIPS.model, unknown]);
    await page.getByLabel('Model of a key').selectOption(FIPS.model);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/model=/);
    expect(await page.locator('tbody tr').count()).toBe(1);
    const downloaded = async (name: string) => {
      const begun = page.waitForEvent('download');
      await page.getByRole('link', { name, exact: true }).click();
      const download = await begun;
      return {
        name: download.suggestedFilename(),
        text: readFileSync(await download.path(), 'utf8'),
      };
    };
    const members = await downloaded('Members as CSV');
    expect(members.name).toBe('members.csv');
    expect(recordsOf(members.text).map(({ id, key_models: model }) => [id, model])).toEqual([
      [bob.id, FIPS.model],
    ]);
    const keys = await downloaded('Security keys as NDJSON');
    expect(keys.name).toBe('keys.ndjson');
    expect(
      keys.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([expect.objectContaining({ member_id: bob.id, model: FIPS.model, fips: true })]);
    await checkPage(visitor, '/admin/members?fips=true&model=unknown'); // no member matches
    expect(await page.locator('[data-files]').count()).toBe(0);
    await page.goto(`/admin/members?model=${encodeURIComponent('YubiKey 5 Series')}`);
    expect(await page.getByLabel('Model of a key').inputValue()).toBe('YubiKey 5 Series');
    expect(await page.getByText('No member matches.').count()).toBe(1);
    await page.goto(`/admin/members?q=${encodeURIComponent(carl.email)}`);
    const whole = recordsOf((await downloaded('Security keys as CSV')).text);
    expect(whole.map(({ email, model }) => [email, model])).toEqual([[carl.email, '']]);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('has one row of tabs on a phone, which begins at the page and follows the focus', async () => {
    await page.setViewportSize(PHONE);
    await page.goto('/admin/audit');
    const last = page.locator('nav.tabs a[href="/admin/audit"]');
    const first = page.locator('nav.tabs a[href="/admin"]');
    await expect.poll(() => isInView(last)).toBe(true);
    expect(await isInView(first)).toBe(false);
    await tabTo(page, 'nav.tabs a[href="/admin"]');
    await expect.poll(() => isInView(first)).toBe(true);
    const height = await page.locator('nav.tabs').evaluate((nav) => nav.clientHeight);
    expect(height).toBeLessThan(64);
  });

  it('job: who has which keys, by the keyboard alone at 390 pixels', async () => {
    const bob = await newMember();
    await addKey(app, bob.client, app.newKey(), 'In the safe');
    const { steps, keys } = await findMember(bob);
    const shown = await page.locator('tr[data-key] th').allTextContents();
    expect(shown.map((name) => name.trim())).toEqual(['Security key', 'In the safe']);
    console.log(`who has which keys: ${steps} steps, ${keys} keys pressed`);
    expect(steps).toBeLessThanOrEqual(5);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('job: a leaver, by the keyboard alone at 390 pixels: what ends is said before and after', async () => {
    const bob = await newMember();
    const found = await findMember(bob);
    let keys = found.keys + (await choose('[data-act="deactivate"] summary'));
    expect(await page.locator('[data-act="deactivate"] [data-ends]').textContent()).toBe(
      '1 session and 1 SSH certificate',
    );
    keys += await choose('[data-act="deactivate"] button');
    await notice('The member is deactivated. Ended: 1 session, 1 SSH certificate.').waitFor();
    console.log(`a leaver: ${found.steps + 2} steps, ${keys} keys pressed`);
    expect(await page.evaluate('document.activeElement.hasAttribute("data-page-notice")')).toBe(
      true,
    );
    expect((await bob.client.get('/v1/keys')).status).toBe(401);
    expect(await page.locator('[data-fact="state"]').textContent()).toBe('Deactivated');
    expect(visitor.pageErrors).toEqual([]);
  });

  it('begins with the acts on a member, each a few keys away, and ends with the latest events', async () => {
    const bob = await newMember();
    await page.setViewportSize(PHONE);
    await page.goto(`/admin/members/${bob.id}`);
    const headings = await page.locator('main h2:visible').allTextContents();
    expect(headings.slice(0, 3)).toEqual([
      'What you can do',
      'If the security key is lost',
      'Account',
    ]);
    expect(headings.at(-1)).toBe('Latest events');
    await tabTo(page, 'main .kicker a');
    let keys = 0;
    for (const name of ['promote', 'deactivate', 'revoke-credentials', 'remove', 'give-pass']) {
      keys += await tabTo(page, `[data-act="${name}"] summary`);
    }
    expect(keys).toBe(5);
    for (const name of ['deactivate', 'revoke-credentials', 'remove']) {
      const box = await page.locator(`[data-act="${name}"] summary`).boundingBox();
      expect((box?.y ?? 0) + (box?.height ?? 0), name).toBeLessThan(PHONE.height);
    }
    expect(await page.locator('[data-events] li').count()).toBeGreaterThan(1);
    const foreign = await page.locator('[data-events]').textContent();
    expect(foreign).toContain(bob.email);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('promotes, demotes, revokes, activates and removes by the keyboard', async () => {
    const bob = await newMember();
    await page.setViewportSize(PHONE);
    await page.goto(`/admin/members/${bob.id}`);
    await act('promote');
    await notice('The member is an admin now.').waitFor();
    await act('demote');
    await notice('The member is no admin any more.').waitFor();
    await act('deactivate');
    await notice('The member is deactivated.').waitFor();
    await act('activate');
    await notice('The member is active again.').waitFor();
    await act('revoke-credentials');
    await notice('The credentials are revoked. Ended: 1 security key.').waitFor();
    await act('remove');
    await page.waitForURL('/admin/members');
    await notice('The member is removed. Nothing had to end.').waitFor();
    expect((await ada.client.get(`/admin/members/${bob.id}`)).status).toBe(404);
  });

  it('ends one session and removes one key by the keyboard', async () => {
    const bob = await newMember();
    const other = app.client();
    await other.logIn(bob.key);
    await addKey(app, bob.client, app.newKey(), 'Spare');
    await page.setViewportSize(PHONE);
    await page.goto(`/admin/members/${bob.id}`);
    await choose('tr[data-session-row] button'); // the first row, which is the newest session
    await notice('The session has ended. Ended: 1 session.').waitFor();
    expect((await other.get('/v1/keys')).status).toBe(401);
    expect((await bob.client.get('/v1/keys')).status).toBe(200);
    await choose('tr[data-key] summary');
    await choose('tr[data-key] button');
    await notice(/The key was removed\. Ended: .*1 session/).waitFor();
    expect((await keysOf(app, bob.email)).map(({ name }) => name)).toEqual(['Spare']);
  });

  it('asks for a touch when the last one is 6 minutes old, then acts', async () => {
    const bob = await newMember();
    await page.goto(`/admin/members/${bob.id}`);
    await touchedAgo(app, ADMIN, 360);
    await act('promote');
    await notice('The member is an admin now.').waitFor();
    expect(await page.locator('[data-fact="role"]').textContent()).toBe('Admin');
  });

  it('refuses the act of a page that shows another state, and changes nothing', async () => {
    const bob = await newMember();
    await page.goto(`/admin/members/${bob.id}`);
    await addKey(app, bob.client, app.newKey(), 'Added meanwhile');
    await act('remove');
    await page.getByRole('status').filter({ hasText: 'This member has changed' }).waitFor();
    expect(await keysOf(app, bob.email)).toHaveLength(2);
    expect((await bob.client.get('/v1/keys')).status).toBe(200);
  });

  it('shows hostile names as text, and they break no layout at 320 pixels', async () => {
    const bob = await newMember();
    await rows(app.dataSource, 'UPDATE users SET name = $2 WHERE id = $1', [bob.id, HOSTILE]);
    await rows(app.dataSource, 'UPDATE authenticators SET name = $2 WHERE user_id = $1', [
      bob.id,
      HOSTILE,
    ]);
    await rows(app.dataSource, 'UPDATE sessions SET user_agent = $2 WHERE user_id = $1', [
      bob.id,
      HOSTILE,
    ]);
    await rows(
      app.dataSource,
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id) VALUES ($1, 'application', $2, $3)`,
      [randomUUID(), JSON.stringify({ client_name: HOSTILE }), bob.id],
    );
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of [`/admin/members/${bob.id}`, `/admin/members?q=${bob.email}`]) {
      await page.goto(path);
      expect(await overflowing(page), path).toEqual([]);
      expect(await page.locator('main img').count()).toBe(0);
      expect(
        await page.locator('bdi', { hasText: '<img src=x onerror=alert(1)>' }).count(),
      ).toBeGreaterThan(0);
    }
    expect(
      visitor.pageErrors.filter((error) => !error.includes('412') && !error.includes('401')),
    ).toEqual([]);
  });

  it('searches, filters and pages without JavaScript', async () => {
    for (let n = 0; n < 55; n += 1) {
      await addMember(app, ADMIN, `crowd-${String(n).padStart(2, '0')}@${DOMAIN}`);
    }
    const context = await browser.newContext({
      baseURL: app.baseUrl,
      javaScriptEnabled: false,
      extraHTTPHeaders: { 'x-forwarded-for': newAddress() },
    });
    const value = ada.client.cookie('svc_session') ?? '';
    await context.addCookies([{ name: 'svc_session', value, url: app.baseUrl }]);
    const plain = await context.newPage();
    try {
      await plain.goto('/admin/members');
      await plain.getByLabel('Name or address').fill('crowd');
      await plain.getByText('Filters', { exact: true }).click();
      await plain.getByLabel('Number of keys').selectOption('none');
      await plain.getByRole('button', { name: 'Search' }).click();
      expect(await plain.locator('tbody tr').count()).toBe(50);
      await plain.getByRole('link', { name: 'Next page' }).click();
      expect(await plain.locator('tbody tr').count()).toBe(5);
      expect(await plain.getByLabel('Number of keys').inputValue()).toBe('none');
      await plain.getByRole('link', { name: 'First page' }).click();
      expect(await plain.locator('tbody tr').count()).toBe(50);
      await plain.locator('tbody tr a').first().click();
      await plain.locator('noscript p').waitFor();
      expect(await plain.locator('form[data-send] button:enabled').count()).toBe(0);
    } finally {
      await context.close();
    }
  });
});
