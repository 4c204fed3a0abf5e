import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import type { Client } from '../support/client.js';
import { CALLBACK, newPkce } from '../support/oauth-flow.js';

const OWNER = 'ada@page.example';

describe('the login page', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
    await app.enrolled(OWNER);
  });
  afterAll(() => app.close());

  const metadata = (name: string) => ({
    client_name: name,
    redirect_uris: [CALLBACK],
    token_endpoint_auth_method: 'none',
  });

  async function loginPageOf(browser: Client, clientId: string, more: Record<string, string> = {}) {
    const query = new URLSearchParams({
      ...more,
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const page = await browser.follow(`/oauth/authorize?${query.toString()}`);
    expect([page.status, page.url.pathname]).toEqual([200, '/login']);
    return page;
  }

  const named = /<p class="note" data-application>([^]*?)<\/p>/;

  it('10.26 names the waiting application and its host', async () => {
    const { clientId } = await addApplication(app, metadata('Pay <roll>'), { owner: OWNER });
    const browser = app.client();
    const [, note = ''] = named.exec((await loginPageOf(browser, clientId)).text) ?? [];
    expect(note).toContain('<strong>Pay &lt;roll&gt;</strong>');
    expect(note).toContain('<strong>client.example</strong>');
    expect(note).not.toContain('registered itself');

    // After the upstream login, the page that asks for the key names the application too.
    const waiting = app.client();
    await waiting.signIn(OWNER);
    expect((await loginPageOf(waiting, clientId)).text).toMatch(named);
  });

  it('10.26 states in one clean line that an application registered itself', async () => {
    const name = `Bank \u202e ${'x'.repeat(80)}`;
    const { clientId } = await addApplication(app, metadata(name), { kind: 'dynamic' });
    const [, note = ''] = named.exec((await loginPageOf(app.client(), clientId)).text) ?? [];
    expect(note).toContain('registered itself');
    expect(note).not.toContain('\u202e');
    expect(note).not.toContain('x'.repeat(65));
  });

  it('10.26 names no application where none waits, even if the address names one', async () => {
    for (const target of ['/', '/interaction/unknown', '/interaction/', '/account/keys']) {
      const { status, text } = await app
        .client()
        .get(`/login?redirect_to=${encodeURIComponent(target)}&application=Evil`);
      expect([status, named.test(text), text.includes('Evil')]).toEqual([200, false, false]);
    }
  });

  it('passes the login_hint of an application on to the identity provider', async () => {
    const { clientId } = await addApplication(app, metadata('Hinting'), { owner: OWNER });
    const hint = 'ada+a&provider=other #1@page.example';
    const upstream = async (more: Record<string, string>) => {
      const browser = app.client();
      const { text } = await loginPageOf(browser, clientId, more);
      const [, href = ''] = /href="(\/login\?provider=demo[^"]*)"/.exec(text) ?? [];
      const { status, headers } = await browser.get(href.replaceAll('&amp;', '&'));
      expect(status).toBe(303);
      return new URL(headers.get('location') ?? '').searchParams.getAll('login_hint');
    };
    expect(await upstream({ login_hint: hint })).toEqual([hint]);
    expect(await upstream({})).toEqual([]);
  });

  it('10.26 offers the security key first in a browser that used one', async () => {
    const order = async (browser: Client) => {
      const { text } = await browser.get('/login');
      return {
        isKeyFirst: text.indexOf('data-ceremony="login"') < text.indexOf('provider=demo'),
        primary: /<(a|button) class="button [^"]*primary/.exec(text)?.[1],
      };
    };
    const newcomer = app.client();
    expect(await order(newcomer)).toEqual({ isKeyFirst: false, primary: 'a' });

    const { client: enrolled, key } = await app.enrolled('returns@page.example');
    await enrolled.post('/logout');
    expect(await order(enrolled)).toEqual({ isKeyFirst: true, primary: 'button' });

    const other = app.client();
    await other.signIn('returns@page.example');
    expect(other.cookie('svc_returning')).toBeUndefined();
    await other.logIn(key);
    await other.post('/logout');
    expect(await order(other)).toEqual({ isKeyFirst: true, primary: 'button' });
    // The cookie has the same value in every browser, so that it identifies no browser.
    expect([enrolled.cookie('svc_returning'), other.cookie('svc_returning')]).toEqual(['1', '1']);
  });
});
