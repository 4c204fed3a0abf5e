import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { openProfile, startBrowser, type BrowserProfile } from '../support/browser.js';
import { enterAs, KeyboardWalk, openWithoutScripts } from '../support/console.js';
import { CALLBACK, newPkce, postForm } from '../support/oauth-flow.js';
import { checkOpenPage, checkPage } from '../support/page-checks.js';
import { requires } from '../support/programs.js';
import { withQuery } from '../support/scim-requests.js';

const ADA = 'ada@sign-in-pages.example';

requires('chromium').describe('each page from the start page to consent, in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let ada: EnrolledUser;
  let dynamic: string;
  let television: string;
  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
    ada = await app.enrolled(ADA);
    const client = { token_endpoint_auth_method: 'none', client_name: 'Photo book' };
    const codes = { redirect_uris: [CALLBACK], response_types: ['code'] };
    ({ clientId: dynamic } = await addApplication(
      app,
      { ...client, ...codes },
      { kind: 'dynamic' },
    ));
    const grant = { grant_types: ['urn:ietf:params:oauth:grant-type:device_code'] };
    const device = { redirect_uris: [], response_types: [], ...grant };
    ({ clientId: television } = await addApplication(
      app,
      { ...client, ...device },
      { owner: ADA },
    ));
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    visitor = await openProfile(browser, app.baseUrl);
  });
  afterEach(() => visitor.leave());

  const enterAsAda = () => enterAs(visitor, app, ada);
  const press = (name: string) => visitor.page.getByRole('button', { name, exact: true }).click();
  const authorization = () =>
    withQuery('/oauth/authorize', {
      client_id: dynamic,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email profile',
      prompt: 'consent',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
  const newCode = async () => {
    const form = { client_id: television, scope: 'openid' };
    const { json } = await postForm(app, '/oauth/device', form);
    return json.user_code as string;
  };

  it.each(['/', '/login', '/login?redirect_to=%2Faccount', '/install'])(
    'shows %s without a session',
    async (path) => {
      await checkPage(visitor, path);
      expect(visitor.pageErrors).toEqual([]);
    },
  );

  it.each(['/', '/login', '/device', '/install'])('shows %s with a session', async (path) => {
    await enterAsAda();
    await checkPage(visitor, path);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('copies the lines that install svc, by the keyboard alone at 390 pixels', async () => {
    const { page } = visitor;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const walk = await KeyboardWalk.begin(page, '/install');
    await walk.press('[data-copy="install-lines"]');
    await page.getByRole('status').filter({ hasText: 'Copied.' }).waitFor();
    const copied = (await page.evaluate('navigator.clipboard.readText()')) as string;
    expect(copied).toBe(`curl -fsSL ${app.baseUrl}/install.sh | sh\n~/.local/bin/svc login`);
    await walk.press('[data-copy="install-checksum"]');
    await expect
      .poll(() => page.evaluate('navigator.clipboard.readText()'))
      .toMatch(/^[\da-f]{64}$/);
    await checkOpenPage(visitor);
    const plain = await openWithoutScripts(browser, app, ada.client);
    await plain.goto('/install');
    expect(await plain.locator('[data-copy]:visible').count()).toBe(0);
    await plain.context().close();
    expect(visitor.pageErrors).toEqual([]);
  });

  it('asks once how to log in at the page of a device: by the key, and by a provider', async () => {
    const { page } = visitor;
    await visitor.plugIn(ada.key);
    const choices = () =>
      page
        .locator('main :is(a, button):visible')
        .allInnerTexts()
        .then((all) => all.filter((text) => /Use your|Continue with/.test(text)));
    const walk = await KeyboardWalk.begin(page, `/device?user_code=${await newCode()}`);
    expect(await choices()).toEqual([
      expect.stringMatching(/^Continue with /),
      'Use your security key',
    ]);
    await walk.press('button[name="sign_in"]');
    await page.getByRole('heading', { name: 'Touch your security key' }).waitFor();
    expect(await choices()).toEqual(['Use your security key']);
    await checkOpenPage(visitor);
    await walk.press('form[data-ceremony] button:enabled');
    await page.waitForURL('/device?user_code=*');
    expect(await choices()).toEqual([]);
    await page.getByText('Is this the code that your device shows?').waitFor();
    await walk.press('form[action="/device"] button');
    await page.getByRole('heading', { name: 'Photo book' }).waitFor();
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    walk.print('log in at the page of a device');
    await page.context().clearCookies();
    await page.goto(`/device?user_code=${await newCode()}`);
    await page.getByRole('button', { name: /^Continue with / }).click();
    // the button leads straight to the provider
    await page.waitForURL((url) => url.origin !== app.baseUrl);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows the enrollment of a first key, and the page after it', async () => {
    const { page } = visitor;
    await visitor.plugIn(app.newKey());
    await page.goto('/login?provider=demo&login_hint=new@sign-in-pages.example');
    await page.getByRole('heading', { name: 'Enroll your security key' }).waitFor();
    await checkPage(visitor, '/enroll');
    await press('Enroll this key');
    await page.getByRole('heading', { name: 'Your key is enrolled' }).waitFor();
    await checkOpenPage(visitor);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows the login and the consent of an application', async () => {
    const { page } = visitor;
    await visitor.plugIn(ada.key);
    await page.goto(authorization());
    await page.getByRole('button', { name: 'Use your security key' }).waitFor();
    await checkPage(visitor, page.url());
    await press('Use your security key');
    await page.getByText('It will be able to').waitFor();
    await checkPage(visitor, page.url());
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows the approval of a device, and its end', async () => {
    await enterAsAda();
    const { page } = visitor;
    await checkPage(visitor, `/device?user_code=${await newCode()}`);
    await page.goto(`/device?user_code=${await newCode()}`);
    await press('Continue');
    await page.getByRole('heading', { name: 'Photo book' }).waitFor();
    await checkOpenPage(visitor);
    await press('Refuse');
    await page.getByText('Refused. The device gets nothing.').waitFor();
    await checkOpenPage(visitor);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows the question whether to log out', async () => {
    await enterAsAda();
    await checkPage(visitor, withQuery('/oauth/logout', { client_id: dynamic }));
    expect(visitor.pageErrors).toEqual([]);
  });

  it.each([
    ['/nothing', 404],
    ['/login?provider=none', 404],
    ['/interaction/nothing', 404],
    ['/oauth/authorize?client_id=nothing', 400],
    [`/saml/complete?${'x'.repeat(300)}`, 400],
  ])('shows the error of %s, which Chromium logs as %i', async (path, status) => {
    const answer = await visitor.page.goto(path);
    expect(answer?.status()).toBe(status);
    expect(visitor.pageErrors.splice(0).filter((error) => !error.includes(`${status}`))).toEqual(
      [],
    );
    await checkOpenPage(visitor);
  });
});
