import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, afterEach, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { startBrowser, openProfile, type BrowserProfile } from '../../support/browser.js';
import { addChromiumKey, giveCredentialTo } from '../../support/chromium-key.js';
import type { Answer } from '../../support/client.js';
import { postForm } from '../../support/oauth-flow.js';
import { requires } from '../../support/programs.js';
import { auditOf } from '../../support/rows.js';

/**
 * The origin of a page on the domain of the relying party, at another port than the service. No
 * server listens there.
 */
const PARENT = 'https://localhost';
const VICTIM = 'admin@parent-domain.example';

type ClientData = Readonly<Record<string, unknown>>;
interface Credential {
  readonly response: { readonly clientDataJSON: string };
}

requires('chromium').describe('a page on the domain of the relying party, in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;

  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
    await app.enrolled(VICTIM);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    visitor = await openProfile(browser, PARENT);
    page = visitor.page;
    await page.route(`${PARENT}/**`, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>Evil</title>' }),
    );
    await addChromiumKey(page, await giveCredentialTo(app, VICTIM));
    await page.goto(PARENT);
  });
  afterEach(() => visitor.leave());

  /**
   * Acts as the page and its server: gets a challenge, lets the browser sign it after one touch,
   * changes the client data, and sends the token request.
   */
  async function attack(tamper: (clientData: ClientData) => ClientData): Promise<Answer> {
    const asked = await postForm(app, '/oauth/fido2/challenge', { client_id: 'svc-cli' });
    const credential = await page.evaluate<Credential>(`(async () => {
      const json = ${JSON.stringify(asked.json.publicKey)};
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(json);
      return (await navigator.credentials.get({ publicKey })).toJSON();
    })()`);
    const written = Buffer.from(credential.response.clientDataJSON, 'base64url').toString();
    // the origin that the browser writes
    expect(JSON.parse(written)).toMatchObject({ origin: PARENT });
    const response = {
      ...credential.response,
      clientDataJSON: encoded(tamper(JSON.parse(written) as ClientData)),
    };
    return postForm(app, '/oauth/token', {
      grant_type: 'urn:svc:params:oauth:grant-type:fido2',
      client_id: 'svc-cli',
      state: asked.json.state as string,
      assertion: encoded({ ...credential, response }),
      scope: 'openid svc:credentials svc:admin',
    });
  }

  it.each([
    [
      'as the browser made it',
      (own: ClientData) => own,
      'The response was made for another origin.',
    ],
    [
      'with the native origin written over its own',
      (own: ClientData) => ({ ...own, origin: 'svc-native:svc-cli' }),
      'The signature does not verify.',
    ],
  ])('10.1 gets no token for one touch: %s', async (_, tamper, reason) => {
    const { status, json } = await attack(tamper);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
    const events = await auditOf(app.dataSource, VICTIM);
    expect(events.at(-1)).toMatchObject({ type: 'login_failed', details: { reason } });
  });
});

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
