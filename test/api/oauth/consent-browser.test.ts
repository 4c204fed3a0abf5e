import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { SoftwareKey } from '../../../src/demo/software-key.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { startBrowser, visit, type Visitor } from '../../support/browser.js';
import { CALLBACK, newPkce } from '../../support/oauth-flow.js';
import { requires } from '../../support/programs.js';

const AFTERWARDS = 'https://client.example/logged-out';

requires('chromium').describe('consent and logging out in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: Visitor;
  let page: Page;
  let key: SoftwareKey;
  let dynamic: string;
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
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    visitor = await visit(browser, app.baseUrl);
    ({ page } = visitor);
    await visitor.plugIn(key);
    await page.route('https://client.example/**', (route) =>
      route.fulfill({ body: 'at the client' }),
    );
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
  const logOut = () => {
    const query = new URLSearchParams({
      client_id: dynamic,
      post_logout_redirect_uri: AFTERWARDS,
      state: 'the state',
    });
    return page.goto(`/oauth/logout?${query.toString()}`);
  };

  it.each([
    { label: 'Allow', parameter: 'code' },
    { label: 'Refuse', parameter: 'error' },
  ])('goes from the login to consent, and on to the client after “$label”', async (choice) => {
    await ask();
    await button('Use your security key').click();
    await page.getByText('Photo book').first().waitFor();
    await button(choice.label).click();
    await page.getByText('at the client').waitFor();
    expect(new URL(page.url()).searchParams.has(choice.parameter)).toBe(true);
    expect(visitor.complaints).toEqual([]);
  });

  it('asks before it ends a session that no application knows of', async () => {
    await logIn();
    await logOut();
    await page.getByRole('heading', { name: 'Log out?' }).waitFor();
    expect(await hasSession()).toBe(true);
    await page.goto('/'); // walks away: nothing ended
    expect(await hasSession()).toBe(true);
    await logOut();
    await button('Log out').click();
    await page.getByText('at the client').waitFor();
    expect(new URL(page.url()).searchParams.get('state')).toBe('the state');
    expect(await hasSession()).toBe(false);
    expect(visitor.complaints).toEqual([]);
  });

  it('goes on by itself where nobody is logged in', async () => {
    await logOut();
    await page.getByText('at the client').waitFor();
    expect(visitor.complaints).toEqual([]);
  });
});
