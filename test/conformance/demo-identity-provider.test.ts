import { describe, expect, it, onTestFinished } from 'vitest';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { followToCallback } from '../support/fake-idp.js';
import { upstreamSuite, BROWSER, complete, REDIRECT_URI, settingsOf } from '../support/upstream.js';

const { connect } = upstreamSuite();

const CLIENT = { clientId: 'svc', clientSecret: 'demo secret', redirectUri: REDIRECT_URI };

async function demo() {
  const idp = await startDemoIdentityProvider(CLIENT);
  onTestFinished(() => idp.close());
  return { idp, providers: await connect([settingsOf({ ...CLIENT, ...idp })]) };
}

describe("the demo's identity provider", () => {
  it('signs in the user that login_hint names, each time another user', async () => {
    const { idp, providers } = await demo();
    for (const email of ['ada.lovelace@engine.test', 'grace@navy.test']) {
      const begun = { redirectTo: '/', loginHint: email, browser: BROWSER };
      const url = await followToCallback(await providers.begin('corp', begun), REDIRECT_URI);
      const { identity } = await complete(providers, { url, browser: BROWSER });
      expect(identity).toMatchObject({ email, issuer: idp.issuer });
      expect(identity.subject).not.toContain('@');
    }
  });

  it('asks for an e-mail when there is no hint, on a page without a script', async () => {
    const { providers } = await demo();
    const start = await providers.begin('corp', { redirectTo: '/', browser: BROWSER });
    const away = await fetch(start, { redirect: 'manual' });
    const signInPage = new URL(away.headers.get('location') ?? '', start);
    const cookie = away.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ');
    const page = await fetch(signInPage, { headers: { cookie } });
    expect(page.status).toBe(200);
    const html = await page.text();
    expect(html).toContain('type="email"');
    expect(html).not.toContain('<script');

    const post = (email: string) =>
      fetch(signInPage, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie },
        body: new URLSearchParams({ email }),
      });
    expect((await post('not an address')).status).toBe(400);
    expect((await post('ada@engine.test')).status).toBe(303);
  });

  it('requires PKCE', async () => {
    const { providers } = await demo();
    const start = await providers.begin('corp', { redirectTo: '/', browser: BROWSER });
    start.searchParams.delete('code_challenge');
    start.searchParams.delete('code_challenge_method');
    const url = await followToCallback(start, REDIRECT_URI);
    expect(url.searchParams.get('error')).toBe('invalid_request');
  });
});
