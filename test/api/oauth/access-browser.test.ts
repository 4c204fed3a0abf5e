import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { ageTouches, setRule } from '../../support/access-targets.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import '../../support/full-scale-only.js';
import { CALLBACK, newPkce, postForm } from '../../support/oauth-flow.js';
import { accessibilityViolations, overflowing, tabTo } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';

const ADA = 'ada@refused-browser.example';
const BOB = 'bob@refused-browser.example';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

requires('chromium').describe(
  'the page for a person who does not reach an application, in Chromium',
  () => {
    let app: TestApp;
    let browser: Browser;
    let visitor: BrowserProfile;
    let page: Page;
    let key: SoftwareKey;
    let application: string;
    let television: string;
    beforeAll(async () => {
      app = await startTestApp();
      browser = await startBrowser();
      await app.enrolled(ADA); // the first user of an organization is its admin
      ({ key } = await app.enrolled(BOB));
      ({ clientId: application } = await addApplication(
        app,
        { client_name: 'Payroll of all departments', redirect_uris: [CALLBACK] },
        { owner: ADA },
      ));
      ({ clientId: television } = await addApplication(
        app,
        {
          client_name: 'Television',
          application_type: 'native',
          token_endpoint_auth_method: 'none',
          grant_types: [DEVICE_GRANT],
          response_types: [],
          redirect_uris: [],
        },
        { owner: ADA },
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
    const ask = () => {
      const query = new URLSearchParams({
        client_id: application,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid email',
        state: 's-1',
        code_challenge: newPkce().challenge,
        code_challenge_method: 'S256',
      });
      return page.goto(`/oauth/authorize?${query.toString()}`);
    };
    const touch = () =>
      page.getByRole('button', { name: /Use your security key|Touch your key/ }).click();
    const check = async () => {
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await accessibilityViolations(page)).toEqual([]);
      expect(await overflowing(page)).toEqual([]);
      // Chromium logs the status 403 of the page as an error; no other error is allowed.
      expect(visitor.pageErrors.filter((text) => !text.includes('403'))).toEqual([]);
    };
    /**
     * Runs an action, and waits until the browser requests the callback of the client. Returns the
     * query of the request.
     */
    const atClient = async (act: () => Promise<unknown>) => {
      const asked = page.waitForRequest((request) => request.url().startsWith(CALLBACK));
      await act();
      return new URL((await asked).url()).searchParams;
    };

    it('leads back to the application by the keyboard alone, which gets access_denied', async () => {
      await setRule(app, application, { access: 'assigned' });
      await ask();
      await touch();
      await page.getByText('You are not assigned to').waitFor();
      await check();
      await button('Go back to client.example').waitFor();
      await tabTo(page, 'button[value="deny"]');
      const sent = await atClient(() => page.keyboard.press('Enter'));
      expect([sent.get('error'), sent.get('state'), sent.get('iss')]).toEqual([
        'access_denied',
        's-1',
        app.baseUrl,
      ]);
    });

    it('asks for a new touch, and goes on to the application', async () => {
      await setRule(app, application, { touchWithinSeconds: 600 });
      await page.goto('/login');
      await touch();
      await page.waitForURL('/');
      await ageTouches(app, BOB, 700);
      await ask();
      expect((await atClient(touch)).get('code')).not.toBeNull();
    });

    it('names the key that is needed after a touch by another one, and offers another touch', async () => {
      await setRule(app, application, { models: 'fips-only', userVerification: 'required' });
      await ask();
      await touch();
      await page.getByText('a touch of a FIPS-certified security key with its PIN').waitFor();
      await check();
      await page.getByRole('link', { name: 'Touch a key again' }).click();
      await touch();
      await page.getByText('needs another touch').waitFor();
      const back = () => button('Go back to client.example').click();
      expect((await atClient(back)).get('error')).toBe('access_denied');
    });

    it('shows a device the same page, and nothing to approve', async () => {
      await setRule(app, television, { access: 'assigned' });
      const { json } = await postForm(app, '/oauth/device', {
        client_id: television,
        scope: 'openid',
      });
      await page.goto('/login');
      await touch();
      await page.waitForURL('/');
      await page.goto(json.verification_uri_complete as string);
      await page.getByRole('button').first().click();
      await page.getByText('You are not assigned to').waitFor();
      await check();
      expect(await button('Approve').count()).toBe(0);
    });
  },
);
