import { generateKeyPairSync } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, afterEach, expect, it } from 'vitest';
import { publicKeyBlob, publicKeyLine } from '@svc/openssh';
import { startTestApp, type TestApp } from '../support/app.js';
import { addChromiumKey, giveCredentialTo } from '../support/chromium-key.js';
import { startBrowser, openProfile, type BrowserProfile } from '../support/browser.js';
import { requires } from '../support/programs.js';
import '../support/full-scale-only.js';

const HOSTILE = '"><img src=x onerror="document.title=\'pwned\'"><script>document.title=1</script>';

const SSH_PUBLIC_KEY = publicKeyLine(
  publicKeyBlob(generateKeyPairSync('ed25519').privateKey),
  'grace@laptop',
);

requires('chromium').describe('the pages in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;

  beforeAll(async () => {
    app = await startTestApp({
      claims: (email) => (email.startsWith('mallory@') ? { name: HOSTILE } : {}),
    });
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  beforeEach(async () => {
    visitor = await openProfile(browser, app.baseUrl);
    page = visitor.page;
  });

  afterEach(() => visitor.leave());

  const button = (name: string) => page.getByRole('button', { name });
  const heading = (name: string) => page.getByRole('heading', { name, exact: true });
  const said = (message: string | RegExp) => page.getByRole('status').filter({ hasText: message });

  /**
   * Signs in at the demo provider. The browser is then at the enrollment, or at the login if the
   * user has a key.
   */
  async function signIn(email: string): Promise<void> {
    await page.goto(`/login?provider=demo&login_hint=${encodeURIComponent(email)}`);
  }

  /** Follows the link of the page after an enrollment to the start page. */
  async function startPage(name: string): Promise<void> {
    await heading('Your key is enrolled').waitFor();
    await page.getByRole('link', { name: 'Continue to the start page' }).click();
    await page.getByRole('heading', { name: `Hello, ${name}` }).waitFor();
  }

  it('completes sign-in, enrollment, login, renaming and logout without a console error', async () => {
    await visitor.plugIn(app.newKey());
    await page.goto('/');
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Continue with the demo provider' }).click();
    await page.getByLabel('E-mail').fill('grace.hopper@example.com');
    await button('Sign in').click();

    await heading('Enroll your security key').waitFor();
    await page.getByLabel('Name of the key').fill('Key ring');
    await button('Enroll this key').click();
    await startPage('Grace Hopper');

    await page.getByLabel('Your SSH public key').fill(SSH_PUBLIC_KEY);
    await button('Get a certificate').click();
    await said(/^Expires .+, serial \d+\.$/).waitFor();
    expect(await page.getByLabel('Your certificate').inputValue()).toMatch(
      /^ssh-ed25519-cert-v01@openssh\.com [\w+/=]{400,}/,
    );

    await page.getByRole('link', { name: 'Your keys' }).click();
    await heading('Key ring').waitFor();
    await page.getByText('Rename', { exact: true }).click();
    await page.getByLabel('New name').fill('Desk <drawer>');
    await button('Save').click();
    await said('Renamed to “Desk <drawer>”.').waitFor();
    await page.reload();
    await heading('Desk <drawer>').waitFor();

    await button('Log out').click();
    await heading('Access that starts with a key in your hand').waitFor();
    await page.goto('/account/keys');
    // without an upstream login: the credential of the key identifies the user
    await button('Use your security key').click();
    await page.waitForURL('/account/keys');
    await heading('Desk <drawer>').waitFor();

    await button('Log out').click();
    await signIn('grace.hopper@example.com');
    await heading('Touch your security key').waitFor();
    await button('Use your security key').click();
    await heading('Hello, Grace Hopper').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });

  it('needs no mouse: Tab and Enter complete the same scenario', async () => {
    await visitor.plugIn(app.newKey());
    await page.goto('/');
    await page.keyboard.press('Tab');
    expect(await focused()).toMatchObject({ text: 'Skip to the content', hasRing: true });

    await choose('Sign in');
    await page.waitForURL('/login');
    await choose('Continue with the demo provider');
    await page.locator('#email:focus').waitFor(); // the field has the focus without a key press
    await page.keyboard.type('keyboard@example.com');
    await page.keyboard.press('Enter');
    await heading('Enroll your security key').waitFor();
    await choose('Enroll this key');
    await startPage('Keyboard');

    await choose('Your keys');
    await heading('Your keys').waitFor();
    await choose('Rename');
    await page.keyboard.press('Tab');
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('Typed');
    await page.keyboard.press('Enter');
    await said('Renamed to “Typed”.').waitFor();
    expect(await focused()).toMatchObject({ text: 'Rename', hasRing: true });

    await page.keyboard.press('Home');
    await page.goto('/account/keys'); // a new page, whose focus starts at the top
    await choose('Log out');
    await page.waitForURL('/');
    await choose('Sign in');
    await page.waitForURL('/login');
    await choose('Use your security key');
    await heading('Hello, Keyboard').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });

  it('10.10 lists the sessions of a user, and ends another one with its button', async () => {
    const key = app.newKey();
    await visitor.plugIn(key);
    await signIn('sessions@example.com');
    await button('Enroll this key').click();
    await startPage('Sessions');
    const other = app.client();
    await other.logIn(key);
    expect((await other.get('/v1/keys')).status).toBe(200);
    await page.getByRole('link', { name: 'Your account' }).click();
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await heading('Your sessions').waitFor();
    const sessions = page.locator('main li.panel');
    expect(await sessions.count()).toBe(2);
    await sessions
      .filter({ hasNot: page.locator('.badge') })
      .getByRole('button')
      .click();
    await said('The session has ended, with every token on it.').waitFor();
    expect((await other.get('/v1/keys')).status).toBe(401);
    await sessions
      .filter({ has: page.locator('.badge') })
      .getByRole('button')
      .click();
    await page.waitForURL('/');
    expect(await page.getByRole('link', { name: 'Sign in' }).count()).toBe(1);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows a hostile name of a user or of a key as text', async () => {
    await visitor.plugIn(app.newKey());
    await signIn('mallory@example.com');
    await page.getByLabel('Name of the key').fill(HOSTILE.slice(0, 64));
    await button('Enroll this key').click();
    await startPage(HOSTILE);
    await page.goto('/account/keys');
    await heading(HOSTILE.slice(0, 64)).waitFor();

    expect(await page.getByRole('banner').textContent()).toContain(HOSTILE);
    expect(await page.locator('img[src=x]').count()).toBe(0);
    expect(await page.title()).toMatch(/^Your keys · /);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('tells a user who cancelled what happened, and offers another try', async () => {
    await page.addInitScript(`
      Object.defineProperty(navigator, 'credentials', {
        value: { create: async () => { throw new DOMException('The operation was cancelled', 'NotAllowedError'); } },
      });
    `);
    await signIn('hesitant@example.com');
    await button('Enroll this key').click();
    await said('it was cancelled, or took too long').waitFor();
    expect(await focused()).toMatchObject({ text: 'Enroll this key' });
    expect(await button('Enroll this key').isEnabled()).toBe(true);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('does not send a private key that was pasted by mistake', async () => {
    await visitor.plugIn(app.newKey());
    await signIn('careless@example.com');
    await button('Enroll this key').click();
    await startPage('Careless');
    const sent: (string | null)[] = [];
    page.on('request', (request) => sent.push(request.postData()));
    await page
      .getByLabel('Your SSH public key')
      .fill('-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA');
    await button('Get a certificate').click();
    await said('This is a private key').waitFor();
    expect(sent.filter((body) => body !== null)).toEqual([]);
  });

  it('disables the button and states the reason while it waits for the key', async () => {
    await page.addInitScript(`
      Object.defineProperty(navigator, 'credentials', { value: { create: () => new Promise(() => {}) } });
    `);
    await signIn('patient@example.com');
    await button('Enroll this key').click();
    await said('Touch it when it blinks').waitFor();
    expect(await button('Enroll this key').isDisabled()).toBe(true);
  });

  it('reports that the service cannot be reached', async () => {
    await visitor.plugIn(app.newKey());
    await signIn('offline@example.com');
    await page.route('**/enroll/webauthn/complete', (route) => route.abort());
    await button('Enroll this key').click();
    await said('The service cannot be reached.').waitFor();
    expect(await button('Enroll this key').isEnabled()).toBe(true);
  });

  it('shows no data of a logged-out user when the browser goes back', async () => {
    await visitor.plugIn(app.newKey());
    await signIn('gone@example.com');
    await button('Enroll this key').click();
    await startPage('Gone');
    await page.goto('/account/keys');
    await button('Log out').click();
    await page.waitForURL('/');
    await page.goBack({ waitUntil: 'commit' }); // from the back/forward cache, without a request
    await page.waitForURL('/login?redirect_to=%2Faccount%2Fkeys');
    expect(await page.getByText('gone@example.com').count()).toBe(0);
  });

  it('10.27 shows no data of a logged-out user from the cache of the disk either', async () => {
    await visitor.plugIn(app.newKey());
    // A page with an unload listener is not kept in the back/forward cache: Back reads the disk
    // cache or sends a request.
    await page.addInitScript("addEventListener('unload', () => {})");
    await signIn('cached@example.com');
    await button('Enroll this key').click();
    await startPage('Cached');
    await page.goto('/account/keys');
    await heading('Your keys').waitFor();
    await button('Log out').click();
    await page.waitForURL('/');
    await page.goBack({ waitUntil: 'commit' });
    await page.waitForURL('/login?redirect_to=%2Faccount%2Fkeys');
    await heading('Sign in').waitFor();
    expect(await page.getByText('cached@example.com').count()).toBe(0);
    await page.goBack({ waitUntil: 'commit' });
    await page.waitForURL('/');
    await heading('Access that starts with a key in your hand').waitFor();
    expect(await page.getByText('cached@example.com').count()).toBe(0);
  });

  it('10.27 links to the login when the session ended in another tab, and returns', async () => {
    await visitor.plugIn(app.newKey());
    await signIn('tabs@example.com');
    await button('Enroll this key').click();
    await startPage('Tabs');
    const other = await page.context().newPage();
    await other.goto('/');
    await other.getByRole('button', { name: 'Log out' }).click();
    await other.getByRole('heading', { name: 'Access that starts' }).waitFor();
    await other.close();

    await page.getByLabel('Your SSH public key').fill(SSH_PUBLIC_KEY);
    await button('Get a certificate').click();
    await page.getByRole('status').getByRole('link', { name: 'Log in again' }).click();
    await page.waitForURL('/login?redirect_to=%2F');
    await button('Use your security key').click();
    await heading('Hello, Tabs').waitFor();
    expect(new URL(page.url()).pathname).toBe('/');
  });

  it('says without JavaScript that a security key needs it, and shows no useless button', async () => {
    const context = await browser.newContext({ baseURL: app.baseUrl, javaScriptEnabled: false });
    try {
      const plain = await context.newPage();
      await plain.goto('/login');
      // located by its element, because playwright finds no text inside `noscript`
      await plain.locator('noscript p').waitFor();
      expect(await plain.getByRole('button', { name: 'Use your security key' }).isDisabled()).toBe(
        true,
      );
      await plain.getByRole('link', { name: 'Continue with the demo provider' }).click();
      await plain.getByLabel('E-mail').waitFor();
    } finally {
      await context.close();
    }
  });

  const WAYS = [
    { way: 'the browser’s own JSON methods', script: '' },
    {
      way: 'a browser that has none',
      script: `
        delete PublicKeyCredential.parseCreationOptionsFromJSON;
        delete PublicKeyCredential.parseRequestOptionsFromJSON;
        delete PublicKeyCredential.prototype.toJSON;
      `,
    },
  ];

  it.each(WAYS)('logs in with a real assertion of Chromium through $way', async ({ script }) => {
    const email = `${crypto.randomUUID()}@example.com`;
    await app.enrolled(email);
    await page.addInitScript(script);
    await addChromiumKey(page, await giveCredentialTo(app, email));

    await page.goto('/login');
    await button('Use your security key').click();
    await page.waitForURL('/');
    await page.getByText('Verified with your security key').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });

  it.each(WAYS)(
    'refuses Chromium’s own key, which is not genuine, through $way',
    async ({ script }) => {
      await page.addInitScript(script);
      await addChromiumKey(page);
      await signIn(`${crypto.randomUUID()}@example.com`);
      const answer = page.waitForResponse('/enroll/webauthn/complete');
      await button('Enroll this key').click();
      const problem = await (await answer).json();
      expect(problem).toMatchObject({ status: 400, code: 'attestation_rejected' });
      await said(problem.detail).waitFor();
    },
  );

  /**
   * Presses Tab until the element with a text has the focus, checks that its focus ring is visible,
   * and presses Enter.
   */
  async function choose(text: string): Promise<void> {
    // Tab skips an element that is disabled until its script has loaded
    await page.waitForLoadState();
    let element = await focused();
    for (let presses = 0; element.text !== text && presses < 20; presses += 1) {
      await page.keyboard.press('Tab');
      element = await focused();
    }
    expect(element, `what Tab reaches on ${page.url()}`).toEqual({ text, hasRing: true });
    await page.keyboard.press('Enter');
  }

  function focused(): Promise<{ text: string; hasRing: boolean }> {
    return page.evaluate(`({
      text: document.activeElement.textContent.trim(),
      hasRing: getComputedStyle(document.activeElement).outlineStyle !== 'none',
    })`);
  }
});
