import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { DemoApplication } from '../src/application/application.js';
import { HttpClient } from '../src/scenario/http-client.js';

const CLIENT = { clientId: 'application', clientSecret: 'the secret of the test' };
const ADA = 'ada.lovelace@example.com';

let application: DemoApplication;
let provider: DemoIdentityProvider;

beforeAll(async () => {
  application = await DemoApplication.start(0);
  const { redirectUri } = application;
  provider = await startDemoIdentityProvider({ ...CLIENT, redirectUri });
});
afterAll(async () => {
  await application.close();
  await provider.close();
});

/** Begins a sign-in, and returns the provider's URL to which it leads, with Ada as `login_hint`. */
async function beginSignIn(browser: HttpClient): Promise<URL> {
  const address = await browser.getUntil('/sign-in', provider.issuer);
  if (!(address instanceof URL)) throw new Error(`/sign-in answered ${address.status}`);
  address.searchParams.set('login_hint', ADA);
  return address;
}

const stateOf = async (browser: HttpClient) =>
  JSON.parse((await browser.get('/state')).body) as object;

describe('the demo application', () => {
  it('refuses every request until it is connected to its provider', async () => {
    expect((await new HttpClient(application.url).get('/')).status).toBe(503);
    await application.connect({ issuer: provider.issuer, ...CLIENT });
    expect((await new HttpClient(application.url).get('/')).status).toBe(200);
  });

  it('signs a user in, and shows the claims of the ID token', async () => {
    const browser = new HttpClient(application.url);
    const page = await browser.get((await beginSignIn(browser)).href);
    expect([page.status, page.url.pathname]).toEqual([200, '/']);
    expect(page.body).toContain(`You are signed in as <strong>${ADA}</strong>`);
    expect(await stateOf(browser)).toEqual({ state: 'signed-in', ended_at: null });
    expect(await stateOf(new HttpClient(application.url))).toMatchObject({ state: 'signed-out' });
  });

  it('refuses the response of a sign-in that another browser began', async () => {
    const address = await beginSignIn(new HttpClient(application.url));
    const thief = new HttpClient(application.url);
    expect((await thief.get(address.href)).status).toBe(400);
    expect(await stateOf(thief)).toMatchObject({ state: 'signed-out' });
  });

  it('refuses a request to another name of its address', async () => {
    const { port } = new URL(application.url);
    const answer = await fetch(`http://localhost:${port}/`);
    expect(answer.status).toBe(421);
  });

  it('ends no session for a logout token that its provider did not sign', async () => {
    const browser = new HttpClient(application.url);
    await browser.get((await beginSignIn(browser)).href);
    const { privateKey } = await generateKeyPair('ES256');
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    const forged = await new SignJWT({ events, sid: 'x', sub: 'y' })
      .setProtectedHeader({ alg: 'ES256', typ: 'logout+jwt', kid: 'demo' })
      .setIssuer(provider.issuer)
      .setAudience(CLIENT.clientId)
      .setJti('1')
      .setIssuedAt()
      .setExpirationTime('2 minutes')
      .sign(privateKey);
    for (const token of [forged, '']) {
      const body = new URLSearchParams({ logout_token: token });
      const answer = await fetch(`${application.url}/backchannel-logout`, { method: 'POST', body });
      expect(answer.status).toBe(400);
    }
    expect(await stateOf(browser)).toMatchObject({ state: 'signed-in' });
  });
});
