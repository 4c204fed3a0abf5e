import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { claimsOf } from '../../support/applications.js';
import { startBrowser } from '../../support/browser.js';
import { newAddress, type Answer } from '../../support/client.js';
import { KeyboardWalk, openAs } from '../../support/console.js';
import '../../support/full-scale-only.js';
import { CALLBACK, newCodeFields, newPkce, postForm } from '../../support/oauth-flow.js';
import { requires } from '../../support/programs.js';

/**
 * The credentials of an application that registered itself, as the form fields of a token request.
 */
interface Registered {
  readonly client_id: string;
  readonly client_secret: string;
}

requires('chromium').describe('a user who ends the access of an application in Chromium', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  let browser: Browser;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@end-access.example');
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  async function register(name: string): Promise<Registered> {
    const metadata = {
      client_name: name,
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'client_secret_post',
    };
    const answer = await app.client().post('/oauth/register', metadata, { address: newAddress() });
    const { client_id, client_secret } = answer.json as Registered;
    return { client_id, client_secret };
  }

  /**
   * Runs the authorization-code flow, in which the user consents.
   *
   * @returns the response of the token endpoint
   */
  async function signInTo(application: Registered): Promise<Answer> {
    const fields = await newCodeFields(ada.client, application.client_id);
    return postForm(app, '/oauth/token', { ...fields, ...application });
  }

  const userinfo = async (token: string) =>
    (
      await app.client().get('/oauth/userinfo', {
        address: newAddress(),
        headers: { authorization: `Bearer ${token}` },
      })
    ).status;
  const isActive = async (application: Registered, token: string) =>
    (await postForm(app, '/oauth/introspect', { ...application, token })).json.active as boolean;

  /** Returns true if the next authorization request of the client leads to the consent page. */
  async function asksConsent({ client_id }: Registered): Promise<boolean> {
    const query = new URLSearchParams({
      client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const path = `/oauth/authorize?${query.toString()}`;
    const sent = await ada.client.get(path, { address: newAddress() });
    const location = sent.headers.get('location') ?? '';
    if (location.startsWith(CALLBACK)) return false;
    const page = await ada.client.get(location, { address: newAddress() });
    expect([page.status, page.text.includes('data-consent')]).toEqual([200, true]);
    return true;
  }

  it('leaves it no token, no code, no consent and no way to renew, and another application keeps all', async () => {
    const [ended, kept] = [await register('Ended'), await register('Kept')];
    const [token, other] = [await signInTo(ended), await signInTo(kept)];
    expect([token.status, other.status]).toEqual([200, 200]);
    const access = token.json.access_token as string;
    const keptAccess = other.json.access_token as string;
    expect(claimsOf(token.json.id_token as string)['email']).toBe('ada@end-access.example');
    const unused = await newCodeFields(ada.client, ended.client_id);
    expect([await userinfo(access), await isActive(ended, access)]).toEqual([200, true]);
    expect(await asksConsent(ended)).toBe(false);

    const profile = await openAs(browser, app, ada);
    const { page, pageErrors } = profile;
    const walk = await KeyboardWalk.begin(page, '/account/applications');
    const item = `[data-application="${ended.client_id}"]`;
    await page.locator(item).getByRole('heading', { name: 'Ended' }).waitFor();
    await walk.press(`${item} summary`);
    await walk.press(`${item} form button`);
    await page.getByText(/^The access has ended\. Ended: /).waitFor();
    walk.print('end the access of an application');
    expect(await page.locator(item).count()).toBe(0);
    expect(await page.locator(`[data-application="${kept.client_id}"]`).count()).toBe(1);
    expect(pageErrors).toEqual([]);
    await profile.leave();

    expect([await userinfo(access), await isActive(ended, access)]).toEqual([401, false]);
    const late = await postForm(app, '/oauth/token', { ...unused, ...ended });
    expect([late.status, late.json.error]).toEqual([400, 'invalid_grant']);
    // The service issues no refresh tokens, and an access token is not accepted as one.
    expect(token.json.refresh_token).toBeUndefined();
    const renewal = { grant_type: 'refresh_token', refresh_token: access, ...ended };
    expect((await postForm(app, '/oauth/token', renewal)).status).toBe(400);
    expect(await asksConsent(ended)).toBe(true);

    expect([await userinfo(keptAccess), await isActive(kept, keptAccess)]).toEqual([200, true]);
    expect(await asksConsent(kept)).toBe(false);
    expect((await ada.client.get('/v1/keys', { address: newAddress() })).status).toBe(200);
    expect((await signInTo(ended)).status).toBe(200); // the user consents again
  });
});
