import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { startBrowser, openProfile, type BrowserProfile } from '../support/browser.js';
import '../support/full-scale-only.js';
import { addKey, keysOf, touchedAgo } from '../support/keys.js';
import { requires } from '../support/programs.js';
import { auditOf } from '../support/rows.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

requires('chromium').describe('the page of the security keys in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;
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
    ({ page } = visitor);
  });
  afterEach(() => visitor.leave());

  const said = (message: string | RegExp) => page.getByRole('status').filter({ hasText: message });
  const panel = (name: string) =>
    page.locator('[data-key]').filter({ has: page.getByRole('heading', { name, exact: true }) });
  const eventTypes = () =>
    page.locator('[data-event]').evaluateAll((all) => all.map((event) => event.dataset['event']));
  const auditTypes = async (email: string) =>
    (await auditOf(app.dataSource, email)).map(({ type }) => type);

  let people = 0;
  /**
   * Creates a user with one key. `counted` has the number of assertions (`touches`) and of new
   * credentials (`made`) that the page requests.
   */
  async function newUser(newKey: SoftwareKey = app.newKey()) {
    people += 1;
    const email = `ada-${people}@keys-page.example`;
    const user: EnrolledUser = await app.enrolled(email);
    const counted = { touches: 0, made: 0 };
    const held = { key: user.key };
    await visitor.plugIn({
      create: (...asked) => {
        counted.made += 1;
        return newKey.create(...asked);
      },
      get: (...asked) => {
        counted.touches += 1;
        return held.key.get(...asked);
      },
    });
    return { email, ...user, newKey, counted, held };
  }

  /** Logs in by the key, and thereby opens the page of the keys. */
  async function openKeys(): Promise<void> {
    await page.goto('/login?redirect_to=%2Faccount%2Fkeys');
    await page.getByRole('button', { name: 'Use your security key' }).click();
    await page.waitForURL('/account/keys');
  }

  it('adds a second key, renames and removes it: each with a notice, an event and an audit row', async () => {
    const { email, newKey, counted } = await newUser();
    await openKeys();
    expect(await page.getByText('Remove', { exact: true }).count()).toBe(0);
    await page.getByText('This is your only key, so it cannot be removed.').waitFor();

    await page.getByLabel('Name of the key').fill('Safe');
    await page.getByRole('button', { name: 'Add a key' }).click();
    await said('Added “Safe”.').waitFor();
    // the touch of the login, which was recent enough to add a key
    expect(counted).toEqual({ touches: 1, made: 1 });
    expect(await page.locator('[data-key]').count()).toBe(2);
    expect(await eventTypes()).toEqual(['key_registered', 'enrollment']);

    await panel('Safe').getByText('Rename', { exact: true }).click();
    await panel('Safe').getByLabel('New name').fill('Drawer');
    await panel('Safe').getByRole('button', { name: 'Save' }).click();
    await said('Renamed to “Drawer”.').waitFor();

    const other = app.client();
    await other.logIn(newKey);
    await other.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    await page.reload();
    expect(await eventTypes()).toEqual(['key_renamed', 'key_registered', 'enrollment']);
    await page.getByText('Safe is now Drawer').waitFor();
    await panel('Drawer').getByText('Remove', { exact: true }).click();
    expect(await panel('Drawer').locator('[data-ends]').textContent()).toBe(
      '1 session and 1 SSH certificate',
    );
    await panel('Drawer').getByRole('button', { name: 'Remove this key' }).click();
    await said('Removed “Drawer”. One session ended.').waitFor();
    expect(await page.locator('[data-key]').count()).toBe(1);
    expect((await eventTypes())[0]).toBe('key_removed');
    expect((await other.get('/v1/keys')).status).toBe(401);
    expect((await auditTypes(email)).filter((type) => type.startsWith('key_'))).toEqual([
      'key_registered',
      'key_renamed',
      'key_removed',
    ]);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('asks for a touch when the last one is 61 s old, then removes the key that was chosen', async () => {
    const { email, client, counted } = await newUser();
    await addKey(app, client, app.newKey(), 'Lost');
    await openKeys();
    await touchedAgo(app, email, 61);
    const challenge = page.waitForResponse(
      (answer) => answer.request().method() === 'DELETE' && answer.status() === 401,
    );
    await panel('Lost').getByText('Remove', { exact: true }).click();
    await panel('Lost').getByRole('button', { name: 'Remove this key' }).click();
    expect((await challenge).headers()['www-authenticate']).toContain(
      'error="insufficient_user_authentication"',
    );
    await said('Removed “Lost”.').waitFor();
    expect(counted.touches).toBe(2);
    expect((await keysOf(app, email)).map(({ name }) => name)).toEqual(['Security key']);
  });

  it('asks for a touch when the last one is 61 s old, then adds the key, and keeps the name', async () => {
    const { email, counted } = await newUser();
    await openKeys();
    await touchedAgo(app, email, 61);
    await page.getByLabel('Name of the key').fill('Safe');
    await page.getByRole('button', { name: 'Add a key' }).click();
    await said('Added “Safe”.').waitFor();
    expect(counted).toEqual({ touches: 2, made: 1 });
    expect((await keysOf(app, email)).map(({ name }) => name)).toEqual(['Security key', 'Safe']);
  });

  it('keeps the new key when the ceremony took more than a minute: one more touch completes it', async () => {
    const slow = app.newKey();
    const { email, counted } = await newUser(slow);
    await openKeys();
    await page.route(
      '**/v1/keys/register/complete',
      async (route) => {
        await touchedAgo(app, email, 61);
        await route.continue();
      },
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Add a key' }).click();
    await said('Added “Security key”.').waitFor();
    expect(counted).toEqual({ touches: 2, made: 1 });
    expect(await keysOf(app, email)).toHaveLength(2);
  });

  it('says that the session ends with its own key, and leads to the login and back to its notice', async () => {
    const { client, newKey, key, held } = await newUser();
    await addKey(app, client, newKey, 'Spare');
    await openKeys();
    const own = panel('Security key');
    await own.getByText('Remove', { exact: true }).click();
    await own.getByText('this session ends too').waitFor();
    await own.getByRole('button', { name: 'Remove this key' }).click();
    await page.waitForURL('/login?redirect_to=%2Faccount%2Fkeys');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect((await app.client().logIn(key)).status).toBe(400);
    expect((await client.get('/v1/keys')).status).toBe(401);
    held.key = newKey;
    await page.getByRole('button', { name: 'Use your security key' }).click();
    await page.waitForURL('/account/keys');
    await said('Removed “Security key”. 2 sessions ended.').waitFor();
    await page.reload();
    await panel('Spare').waitFor();
    expect(await said('Removed').count()).toBe(0);
  });

  it('refuses the last key in plain words, when another page removed the other one', async () => {
    const { email, client } = await newUser();
    const added = await addKey(app, client, app.newKey(), 'Spare');
    await openKeys();
    await client.send('DELETE', `/v1/keys/${added.json.key.id as string}`);
    const own = panel('Security key');
    await own.getByText('Remove', { exact: true }).click();
    await own.getByRole('button', { name: 'Remove this key' }).click();
    await said('This is your only key. Add another one first, then remove this one.').waitFor();
    expect(await keysOf(app, email)).toHaveLength(1);
  });

  it('explains a key of another make, and one that the user has already', async () => {
    const { client } = await newUser(new SoftwareKey());
    await openKeys();
    await page.getByRole('button', { name: 'Add a key' }).click();
    await said('This key could not prove that it is a genuine YubiKey.').waitFor();
    await page.evaluate(`
      navigator.credentials.create = async () => {
        throw new DOMException('registered', 'InvalidStateError');
      };
    `);
    await page.getByRole('button', { name: 'Add a key' }).click();
    await said('This security key is enrolled for this account already.').waitFor();
    expect(await page.getByRole('button', { name: 'Add a key' }).isEnabled()).toBe(true);
    expect((await client.get('/v1/keys')).json.keys).toHaveLength(1);
  });

  it('needs no mouse: Tab and Enter add and remove a key', async () => {
    const { email } = await newUser();
    await openKeys();
    await choose('Name of the key');
    await page.keyboard.type('Typed');
    await page.keyboard.press('Enter');
    await said('Added “Typed”.').waitFor();
    expect(await page.evaluate('document.activeElement.hasAttribute("data-page-notice")')).toBe(
      true,
    );
    await panel('Typed').getByText('Remove', { exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent.trim()')).toBe(
      'Remove this key',
    );
    await page.keyboard.press('Enter');
    await said('Removed “Typed”.').waitFor();
    expect(await keysOf(app, email)).toHaveLength(1);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('fits a telephone of 390 pixels without scrolling sideways', async () => {
    const { client } = await newUser();
    await addKey(app, client, app.newKey(), 'W'.repeat(64));
    await page.setViewportSize({ width: 390, height: 844 });
    await openKeys();
    for (const summary of await page.getByText('Remove', { exact: true }).all()) {
      await summary.click();
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  });

  /** Presses Tab until the field with a label has the focus. */
  async function choose(label: string): Promise<void> {
    await page.waitForLoadState();
    for (let presses = 0; presses < 30; presses += 1) {
      const labels = await page.evaluate(
        'Array.from(document.activeElement.labels ?? []).map(({ textContent }) => textContent).join()',
      );
      if (String(labels).startsWith(label)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not reach ${label}`);
  }
});
