import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { startBrowser, openProfile, type BrowserProfile } from '../../support/browser.js';
import { CALLBACK, newPkce, postForm } from '../../support/oauth-flow.js';
import { requires } from '../../support/programs.js';

const TOKEN = 'a token that only the conformance suite knows';
const ADA = 'ada@screens.example';

requires('chromium').describe('devices and certification in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;
  let adasKey: SoftwareKey;
  let television: string;
  let dynamic: string;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_CERTIFICATION_TEST_TOKEN: TOKEN } });
    browser = await startBrowser();
    ({ key: adasKey } = await app.enrolled(ADA));
    const grants = ['urn:ietf:params:oauth:grant-type:device_code'];
    const shared = { token_endpoint_auth_method: 'none', response_types: [], redirect_uris: [] };
    const metadata = { ...shared, client_name: 'Television', grant_types: grants };
    ({ clientId: television } = await addApplication(app, metadata, { owner: ADA }));
    ({ clientId: dynamic } = await addApplication(
      app,
      { ...shared, redirect_uris: [CALLBACK], response_types: ['code'] },
      { kind: 'dynamic' },
    ));
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

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const newCodes = async () => {
    const answer = await postForm(app, '/oauth/device', { client_id: television, scope: 'openid' });
    return answer.json as { device_code: string; verification_uri_complete: string };
  };
  const poll = async (deviceCode: string) => {
    const { json } = await postForm(app, '/oauth/token', {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: deviceCode,
      client_id: television,
    });
    return json as { error?: string; id_token?: string };
  };

  it('leads from the address on the device through a login and another touch to its approval', async () => {
    await visitor.plugIn(adasKey);
    const codes = await newCodes();
    await page.goto(codes.verification_uri_complete);
    await button('Continue').click();
    await button('Use your security key').click();
    await page.waitForURL('/device?user_code=*');
    await button('Continue').click();
    await page.getByRole('heading', { name: 'Television' }).waitFor();
    await app.dataSource.query("UPDATE sessions SET auth_time = now() - interval '1 h'");
    await button('Approve').click();
    await page.getByText('Approved. Go back to the device').waitFor();
    expect(await button('Refuse').count()).toBe(0);
    expect(await poll(codes.device_code)).toMatchObject({ id_token: expect.any(String) });
    // Chromium logs the 401 that demanded a touch as an error; no other error is allowed.
    expect(visitor.pageErrors.filter((complaint) => !complaint.includes('401'))).toEqual([]);
  });

  it('refuses a device with its button', async () => {
    await visitor.plugIn(adasKey);
    await page.goto('/login');
    await button('Use your security key').click();
    await page.waitForURL('/');
    const codes = await newCodes();
    await page.goto(codes.verification_uri_complete);
    await button('Continue').click();
    await button('Refuse').click();
    await page.getByText('Refused. The device gets nothing.').waitFor();
    expect((await poll(codes.device_code)).error).toBe('access_denied');
    expect(visitor.pageErrors).toEqual([]);
  });

  it.each([
    { label: 'Complete the login', parameter: 'code' },
    { label: 'Deny the login', parameter: 'error' },
  ])(
    'leads to the client after “$label”, as the Content-Security-Policy allows',
    async ({ label, parameter }) => {
      const query = new URLSearchParams({
        client_id: dynamic,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
        code_challenge: newPkce().challenge,
        code_challenge_method: 'S256',
      });
      await page.goto(`/oauth/authorize?${query.toString()}`);
      const form = page.locator('form', { has: button(label) });
      await form.getByLabel('Test token').fill(TOKEN);
      await button(label).click();
      await page.getByText('at the client').waitFor();
      expect(new URL(page.url()).searchParams.has(parameter)).toBe(true);
      expect(visitor.pageErrors).toEqual([]);
    },
  );
});
