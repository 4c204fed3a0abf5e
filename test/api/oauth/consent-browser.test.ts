import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import { CALLBACK, newPkce } from '../../support/oauth-flow.js';
import { requires } from '../../support/programs.js';

const AFTERWARDS = 'https://client.example/logged-out';

requires('chromium').describe('consent and logging out in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;
  let key: SoftwareKey;
  let dynamic: string;
  let application: string;
  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
    ({ key } = await app.enrolled('ada@consent.example'));
    ({ clientId: dynamic } = await addApplication(
      app,
      {
        client_name: 'Photo book',
        token_endpoint_auth_method: 'none',
        redirect_uris: [CALLBACK],
        post_logout_redirect_uris: [AFTERWARDS],
        response_types: ['code'],
      },
      { kind: 'dynamic' },
    ));
    ({ clientId: application } = await addApplication(
      app,
      { redirect_uris: [CALLBACK], post_logout_redirect_uris: [AFTERWARDS] },
      { owner: 'ada@consent.example' },
    ));
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    visitor = await openProfile(browser, app.baseUrl);
    ({ page } = visitor);
    await visitor.plugIn(key);
  });
  afterEach(() => visitor.leave());

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const logIn = async () => {
    await page.goto('/login');
    await button('Use your security key').click();
    await page.waitForURL('/');
  };
  const hasSession = async () => {
    const cookies = await page.context().cookies(app.baseUrl);
    return cookies.some(({ name }) => name === 'svc_session');
  };
  const ask = () => {
    const query = new URLSearchParams({
      client_id: dynamic,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      prompt: 'consent',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    return page.goto(`/oauth/authorize?${query.toString()}`);
  };
  const logOut = (clientId = dynamic) => {
    const query = new URLSearchParams({
      client_id: clientId,
      post_logout_redirect_uri: AFTERWARDS,
      state: 'the state',
    });
    return page.goto(`/oauth/logout?${query.toString()}`);
  };

  it('continues from the login to consent, and to the client after “Allow”', async () => {
    await ask();
    await button('Use your security key').click();
    await page.getByText('It will be able to').waitFor();
    await button('Allow').click();
    await page.getByText('at the client').waitFor();
    expect(new URL(page.url()).searchParams.has('code')).toBe(true);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('10.8 stays on the service’s page after “Refuse” until a user has consented, and leads to the client afterwards', async () => {
    await app.dataSource.query('DELETE FROM oauth_consents');
    await ask();
    await button('Use your security key').click();
    await button('Refuse').click();
    await page.getByRole('heading', { name: 'Access was refused' }).waitFor();
    expect(new URL(page.url()).origin).toBe(app.baseUrl);

    await ask();
    await button('Allow').click();
    await page.getByText('at the client').waitFor();
    await ask();
    await button('Refuse').click();
    await page.getByText('at the client').waitFor();
    expect(new URL(page.url()).searchParams.get('error')).toBe('access_denied');
    // Chromium logs the status 400 of the service's page as an error; no other error is allowed.
    expect(visitor.pageErrors.filter((complaint) => !complaint.includes('400'))).toEqual([]);
  });

  it('asks before it ends a session without an application', async () => {
    await logIn();
    await logOut();
    await page.getByRole('heading', { name: 'Log out?' }).waitFor();
    expect(await hasSession()).toBe(true);
    await page.goto('/'); // leaves the page without an answer
    expect(await hasSession()).toBe(true);
    await logOut();
    await button('Log out').click();
    await page.getByText('at the client').waitFor();
    expect(new URL(page.url()).searchParams.get('state')).toBe('the state');
    expect(await hasSession()).toBe(false);
    expect(visitor.pageErrors).toEqual([]);
  });

  it('10.8 asks before it leads to a client that registered itself, without a session too', async () => {
    await logOut();
    await page.getByText('client.example').waitFor();
    expect(new URL(page.url()).origin).toBe(app.baseUrl);
    await button('Continue').click();
    await page.getByText('at the client').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });

  it('redirects at once to an application that a user registered, without a session', async () => {
    await logOut(application);
    await page.getByText('at the client').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });
});
