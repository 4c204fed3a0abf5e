import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import type { Client } from '../../support/client.js';
import { KeyboardWalk } from '../../support/console.js';
import '../../support/full-scale-only.js';
import { addKey } from '../../support/keys.js';
import { OauthRows } from '../../support/oauth-rows.js';
import {
  accessibilityViolations,
  checkPage,
  overflowing,
  tabTo,
} from '../../support/page-checks.js';
import { idOf } from '../../support/org-api.js';
import { requires } from '../../support/programs.js';
import { count, rows } from '../../support/rows.js';
import { registerApplication } from '../../support/signed-in-application.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

/** A text with markup, changes of the text direction, and 10,000 characters without a space. */
const HOSTILE = `<img src=x onerror=alert(1)>\u202e\u2066gnp.exe"'${'W'.repeat(10_000)}`;

/** The longest name that an application may have (64 characters), without a space. */
const HOSTILE_NAME = `<b>${'W'.repeat(61)}`;

const PAGES = ['', '/reach', '/keys', '/sessions', '/credentials', '/applications', '/activity'];

requires('chromium').describe('the pages of the account in Chromium', () => {
  let app: TestApp;
  let oauth: OauthRows;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;
  beforeAll(async () => {
    app = await startTestApp();
    oauth = new OauthRows(app.dataSource);
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

  const notice = (text: string | RegExp) =>
    page.locator('[data-page-notice]').filter({ hasText: text });
  let people = 0;

  /**
   * Creates a user with a key, plugs the key in, and puts the session of the user into the browser.
   */
  async function newUser(email = `ada-${(people += 1)}@account-pages.example`) {
    const { client, key } = await app.enrolled(email);
    await visitor.plugIn(key);
    await enter(client);
    const id = await idOf(app, email);
    return { id, email, client, key };
  }

  /** Copies the session cookie of a client into the browser. */
  const enter = (client: Client) =>
    page
      .context()
      .addCookies([
        { name: 'svc_session', value: client.cookie('svc_session') ?? '', url: app.baseUrl },
      ]);

  /**
   * Inserts an application with a name, and a token of it in the user's session. Returns its id.
   */
  async function signedInTo(userId: string, name: string): Promise<string> {
    const clientId = await oauth.client();
    await rows(app.dataSource, 'UPDATE oauth_clients SET metadata = $2 WHERE id = $1', [
      clientId,
      JSON.stringify({ client_name: name, redirect_uris: ['https://grafana.example/cb'] }),
    ]);
    const [own] = await rows<{ id: string; key_id: string }>(
      app.dataSource,
      'SELECT id, authenticator_id AS key_id FROM sessions WHERE user_id = $1 AND client_id IS NULL LIMIT 1',
      [userId],
    );
    const user = { id: userId, email: '', orgId: null, keyId: own?.key_id ?? '' };
    await oauth.token(user, { clientId, session: { id: own?.id ?? '', token: '' } });
    return clientId;
  }

  const newCertificate = async (client: Client): Promise<string> =>
    (await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() })).json.serial;

  it('is accessible, fits each screen, and loads little: every page, filled', async () => {
    const { id, client, key } = await newUser();
    await app.client().logIn(key);
    await newCertificate(client);
    await signedInTo(id, 'Grafana');
    for (const path of [...PAGES.map((end) => `/account${end}`), '/enroll/done']) {
      await checkPage(visitor, path);
    }
    expect(visitor.pageErrors).toEqual([]);
  });

  it('is accessible for a person without an organization and with nothing but one key', async () => {
    await newUser(`ada-${crypto.randomUUID()}@gmail.com`);
    for (const path of ['/account', '/account/credentials', '/account/applications']) {
      await page.goto(path);
      expect(await accessibilityViolations(page), path).toEqual([]);
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    }
    await page.goto('/account/applications');
    await page.getByText('You signed in to no application yet.').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows the owner of an own application what it did not take, by keyboard at 390 pixels', async () => {
    const { client } = await newUser(`ada-${crypto.randomUUID()}@gmail.com`);
    const stranger = await app.enrolled(`eve-${crypto.randomUUID()}@gmail.com`);
    const { clientId } = await registerApplication(client, { name: HOSTILE_NAME });
    const foreign = await registerApplication(stranger.client, { name: 'Foreign' });
    await rows(
      app.dataSource,
      `INSERT INTO logout_notices (client_id, self_registered, user_id, dead_at, last_result)
       SELECT id, false, gen_random_uuid(), now(), 'answer 500' FROM unnest($1::text[]) id`,
      [[clientId, clientId, foreign.clientId]],
    );
    await checkPage(visitor, '/account');
    const walk = await KeyboardWalk.begin(page, '/account');
    const letters = page.locator('[data-dead-letters] tbody tr');
    expect(await letters.count()).toBe(2);
    expect(await letters.first().textContent()).toContain('answer 500');
    const waiting = `logout_notices WHERE client_id = '${clientId}' AND dead_at IS NULL`;
    await walk.press('form[data-send$="/repeat"] button');
    await notice('The notice is sent again.').waitFor();
    await expect.poll(() => letters.count()).toBe(1);
    // The application has no back-channel logout URI, so that the service drops its notices.
    await expect.poll(() => count(app.dataSource, waiting)).toBe(0);
    await walk.press('form[data-send^="DELETE"] button');
    await notice('The notice is dropped.').waitFor();
    expect(await page.locator('[data-dead-letters]').count()).toBe(0);
    walk.print('settle the dead letters of an own application');
    const left = await rows(app.dataSource, 'SELECT client_id FROM logout_notices');
    expect(left).toEqual([{ client_id: foreign.clientId }]);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows one key alone as a risk, and not two', async () => {
    const { client } = await newUser();
    await page.goto('/account');
    await page.getByText('A lost key locks you out until an admin helps.').waitFor();
    await addKey(app, client, app.newKey(), 'Spare');
    await page.reload();
    expect(await page.locator('[data-risk]').count()).toBe(0);
    expect(await page.locator('[data-count="keys"]').textContent()).toBe('2');
    await page.getByText('/install.sh | sh').waitFor();
  });

  it('hides the amber hint about one key for good, by the keyboard at 390 pixels and without a script', async () => {
    const { client, key, id } = await newUser();
    await checkPage(visitor, '/account');
    const hint = page.locator('[data-risk]');
    await page.emulateMedia({ colorScheme: 'light' });
    const color = await page.evaluate(
      'getComputedStyle(document.querySelector("[data-risk]")).borderTopColor',
    );
    expect(color).toBe('rgb(122, 74, 0)');
    const walk = await KeyboardWalk.begin(page, '/account');
    const loaded = page.waitForEvent('load'); // page.reload() fails while the page still loads
    await walk.press('[data-risk] button');
    await loaded;
    expect(await hint.count()).toBe(0);
    await page.reload();
    expect(await hint.count()).toBe(0);
    const kept = (await page.context().cookies()).find(({ name }) => name === 'svc_dismissed');
    expect(kept).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/account' });
    expect((kept?.expires ?? 0) - Date.now() / 1000).toBeGreaterThan(300 * 86_400);
    const later = app.client();
    await later.logIn(key);
    await enter(later);
    await page.goto('/account');
    expect(await hint.count()).toBe(0);
    // this client has no `svc_dismissed` cookie
    expect((await client.get('/account')).text).toContain('data-risk');
    const spare = app.newKey();
    await addKey(app, later, spare, 'Spare');
    const other = app.client();
    await other.logIn(spare);
    await rows(
      app.dataSource,
      "DELETE FROM authenticators WHERE user_id = $1 AND name <> 'Spare'",
      [id],
    );
    await enter(other);
    await page.goto('/account');
    expect(await hint.count()).toBe(1);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('draws where to touch each key, with the same in words', async () => {
    await newUser();
    await page.goto('/account/keys');
    const drawing = page.getByRole('img', { name: /^Touch / });
    expect(await drawing.count()).toBe(1);
  });

  it('revokes a certificate by keyboard alone at 390 pixels', async () => {
    const { client } = await newUser();
    const serial = await newCertificate(client);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/account/credentials');
    await tabTo(page, 'details:has(form) > summary');
    await page.keyboard.press('Enter');
    await tabTo(page, 'form[data-send] button:enabled');
    await page.keyboard.press('Enter');
    await notice('Revoked. Ended: 1 SSH certificate.').waitFor();
    await page.getByText('Revoked', { exact: true }).waitFor();
    expect(await page.locator('form[data-send]').count()).toBe(0);
    expect(
      await count(app.dataSource, 'ssh_certificates WHERE serial = $1 AND revoked_at IS NOT NULL', [
        serial,
      ]),
    ).toBe(1);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('ends the access of an application by keyboard alone at 390 pixels', async () => {
    const { id } = await newUser();
    const clientId = await signedInTo(id, 'Grafana');
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/account/applications');
    await tabTo(page, 'details:has(form) > summary');
    await page.keyboard.press('Enter');
    await tabTo(page, 'form[data-send] button:enabled');
    await page.keyboard.press('Enter');
    await notice('The access has ended.').waitFor();
    expect(await count(app.dataSource, 'oauth_grants WHERE client_id = $1', [clientId])).toBe(0);
    await page.getByText('You signed in to no application yet.').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });

  it('ends one session, then all others, by keyboard alone at 390 pixels', async () => {
    const { id, key } = await newUser();
    for (let n = 0; n < 3; n += 1) await app.client().logIn(key);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/account/sessions');
    await tabTo(page, 'form[data-send^="DELETE"]:not([data-next]) button:enabled');
    await page.keyboard.press('Enter');
    await notice('The session has ended').waitFor();
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [id])).toBe(3);
    await tabTo(page, 'form[data-send$="end-others"] button:enabled');
    await page.keyboard.press('Enter');
    await notice('Ended: 2 sessions.').waitFor();
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [id])).toBe(1);
    expect(await page.locator('form[data-send$="end-others"]').count()).toBe(0);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('changes nothing from a page of an earlier session, and says so', async () => {
    const { client, key } = await newUser();
    const serial = await newCertificate(client);
    await page.goto('/account/credentials');
    const later = app.client();
    await later.logIn(key);
    await enter(later);
    await page.locator('details:has(form) > summary').click();
    await page.getByRole('button', { name: 'Revoke this certificate' }).click();
    await page.getByRole('status').filter({ hasText: 'earlier session' }).waitFor();
    expect(
      await count(app.dataSource, 'ssh_certificates WHERE serial = $1 AND revoked_at IS NULL', [
        serial,
      ]),
    ).toBe(1);
  });

  it('shows hostile names of an application, a key and a device as text, and keeps the layout at 320 pixels', async () => {
    const { id, client } = await newUser();
    await newCertificate(client);
    const clientId = await signedInTo(id, HOSTILE);
    for (const statement of [
      'UPDATE authenticators SET name = $2 WHERE user_id = $1',
      'UPDATE sessions SET user_agent = $2 WHERE user_id = $1',
      'UPDATE users SET name = $2 WHERE id = $1',
      'UPDATE audit_events SET user_agent = $2, request_id = $2, client_name = $2 WHERE subject_id = $1',
    ]) {
      await rows(app.dataSource, statement, [id, HOSTILE]);
    }
    for (const [type, details] of [
      ['key_renamed', { earlier_name: HOSTILE, name: HOSTILE }],
      ['oauth_token_issued', { client_id: clientId, grant_type: HOSTILE, scope: HOSTILE }],
      ['aws_credential', { role_arn: HOSTILE, expires_at: HOSTILE }],
    ] as const) {
      await rows(
        app.dataSource,
        `INSERT INTO audit_events (id, type, class, actor_id, subject_id, details, client_name, user_agent)
         VALUES (gen_random_uuid(), $2, 'oauth', $1, $1, $3, $4, $4)`,
        [id, type, JSON.stringify(details), HOSTILE],
      );
    }
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of [...PAGES.map((end) => `/account${end}`), '/enroll/done']) {
      await page.goto(path);
      expect(await overflowing(page), path).toEqual([]);
      expect(await page.locator('img[src=x]').count(), path).toBe(0);
      expect(await page.getByText('<img src=x onerror=alert(1)>').count(), path).toBeGreaterThan(0);
    }
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows everything without JavaScript, says what needs it, and enables no button', async () => {
    const { id, client, key } = await newUser();
    await app.client().logIn(key);
    await newCertificate(client);
    await signedInTo(id, 'Grafana');
    const context = await browser.newContext({ baseURL: app.baseUrl, javaScriptEnabled: false });
    await context.addCookies([
      { name: 'svc_session', value: client.cookie('svc_session') ?? '', url: app.baseUrl },
    ]);
    const plain = await context.newPage();
    const shown = {
      '': 'One key',
      '/keys': 'needs JavaScript',
      '/sessions': 'needs JavaScript',
      '/credentials': 'needs JavaScript',
      '/applications': 'needs JavaScript',
      '/activity': 'You enrolled your first security key',
    };
    for (const [end, text] of Object.entries(shown)) {
      await plain.goto(`/account${end}`);
      const where =
        text === 'needs JavaScript' ? plain.locator('noscript .status') : plain.locator('main');
      await where.filter({ hasText: text }).waitFor();
      // A form with a method attribute works without a script, so that its button stays enabled.
      const enabled = plain.locator('main form:not([method]) button:enabled');
      expect(await enabled.count(), end).toBe(0);
    }
    await context.close();
  });

  it('pages through the activity by links, without JavaScript', async () => {
    const { id, client } = await newUser();
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, actor_id, subject_id, created_at)
       SELECT gen_random_uuid(), 'login_success', 'auth', $1, $1, now() - make_interval(days => n)
       FROM generate_series(1, 60) n`,
      [id],
    );
    const first = (await client.get('/account/activity')).text;
    const older = /href="(\/account\/activity\?after=[\w-]+)" rel="next"/.exec(first)?.[1] ?? '';
    const second = (await client.get(older)).text;
    const shownOn = (text: string) => text.match(/data-event=/g)?.length ?? 0;
    const all = await count(app.dataSource, 'audit_events WHERE subject_id = $1', [id]);
    expect([shownOn(first), shownOn(first) + shownOn(second)]).toEqual([50, all]);
    expect(second).toContain('href="/account/activity"');
    expect((await client.get('/account/activity?after=nonsense')).status).toBe(200);
  });

  it('leads to the second key and to svc after an enrollment, and an application back to the application', async () => {
    await visitor.plugIn(app.newKey());
    const enroll = async (email: string, target: string) => {
      await page.goto(`/login?provider=demo&login_hint=${email}${target}`);
      await page.getByRole('button', { name: 'Enroll this key' }).click();
    };
    await enroll('new@account-pages.example', '');
    await page.waitForURL('/enroll/done');
    await page.getByRole('heading', { name: 'Now a second key' }).waitFor();
    await page.getByRole('heading', { name: 'Install svc' }).waitFor();
    await page.getByRole('link', { name: 'Add a second key' }).click();
    await page.waitForURL('/account/keys#add');
    await page.context().clearCookies();
    await enroll('sent@account-pages.example', '&redirect_to=%2Faccount%2Factivity');
    await page.waitForURL('/account/activity');
    expect(visitor.pageErrors).toEqual([]);
  });

  it('exports one file by the button', async () => {
    const { email } = await newUser();
    await page.goto('/account');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export as JSON' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('account.json');
    const chunks: Buffer[] = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString()).profile.email).toBe(email);
  });
});
