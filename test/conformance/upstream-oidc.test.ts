import { describe, expect, it } from 'vitest';
import { changed, type Misbehaviour } from '../support/fake-idp.js';
import {
  upstreamSuite,
  BASE_URL,
  BROWSER,
  complete,
  fakeIdp,
  refusal,
  settingsOf,
} from '../support/upstream.js';

const { connect, signIn } = upstreamSuite();

describe('the authorization request', () => {
  it('carries PKCE S256, a nonce, an opaque state, the redirect URI and the hint (RFC 7636 §4.3, OIDC Core §3.1.2.1)', async () => {
    const idp = await fakeIdp();
    idp.misbehaviour = {
      document: changed({ authorization_endpoint: `${idp.origin}/authorize?policy=mfa` }),
    };
    const providers = await connect([settingsOf(idp)]);
    const options = { redirectTo: '/account/keys?secret-path', browser: BROWSER };
    const url = await providers.begin('corp', { ...options, loginHint: 'ada@engine.test' });
    const parameters = Object.fromEntries(url.searchParams);
    expect(parameters).toMatchObject({
      policy: 'mfa',
      client_id: 'svc',
      response_type: 'code',
      scope: 'openid email profile',
      redirect_uri: `${BASE_URL}/oauth/callback`,
      code_challenge_method: 'S256',
      login_hint: 'ada@engine.test',
    });
    expect(parameters['nonce']).toMatch(/^[\w-]{43}$/);
    expect(parameters['code_challenge']).toMatch(/^[\w-]{43}$/);
    expect(parameters['state']).not.toContain('keys');

    const again = await providers.begin('corp', options);
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(again.searchParams.get(name)).not.toBe(parameters[name]);
    }
    expect(again.searchParams.has('login_hint')).toBe(false);
  });

  it('is refused for a provider that is not configured', async () => {
    const providers = await connect([settingsOf(await fakeIdp())]);
    const attempt = providers.begin('nobody', { redirectTo: '/', browser: BROWSER });
    expect((await refusal(attempt)).code).toBe('unknown_provider');
  });
});

describe('the callback', () => {
  it('returns the user who signed in and the target of the browser', async () => {
    const idp = await fakeIdp();
    const providers = await connect([settingsOf(idp)]);
    const url = await providers.begin('corp', {
      redirectTo: '/account/keys?tab=1',
      browser: BROWSER,
    });
    const back = idp.authorize(url);
    back.host = 'evil.test'; // the service ignores the Host header
    expect(await complete(providers, { url: back, browser: BROWSER })).toEqual({
      redirectTo: '/account/keys?tab=1',
      identity: {
        provider: 'corp',
        issuer: idp.issuer,
        subject: 'subject-1',
        tenant: '',
        email: 'ada@engine.test',
        name: 'Ada Lovelace',
        organizationDomain: 'engine.test',
      },
    });
    expect(idp.tokenRequests[0]?.form['redirect_uri']).toBe(`${BASE_URL}/oauth/callback`);
  });

  it('authenticates with Basic and an encoded secret (RFC 6749 §2.3.1), or in the body if the provider requires it', async () => {
    const idp = await fakeIdp();
    await signIn(idp);
    const pair = `svc:${new URLSearchParams({ s: idp.clientSecret }).toString().slice(2)}`;
    expect(idp.tokenRequests[0]?.authorization).toBe(`Basic ${btoa(pair)}`);
    expect(idp.tokenRequests[0]?.form).not.toHaveProperty('client_secret');

    idp.misbehaviour = {
      document: changed({ token_endpoint_auth_methods_supported: ['client_secret_post'] }),
    };
    await signIn(idp);
    expect(idp.tokenRequests[1]?.authorization).toBeUndefined();
    expect(idp.tokenRequests[1]?.form).toMatchObject({ client_secret: idp.clientSecret });
  });

  it('is refused in another browser, forged, without a state, and on replay', async () => {
    const idp = await fakeIdp();
    const providers = await connect([settingsOf(idp)]);
    const url = await providers.begin('corp', { redirectTo: '/', browser: BROWSER });
    const back = idp.authorize(url);
    const forged = new URL(back);
    forged.searchParams.set('state', 'A'.repeat(200));
    const stateless = new URL(back);
    stateless.searchParams.delete('state');
    const attempts = [
      { url: back, browser: 'another browser' },
      { url: forged, browser: BROWSER },
      { url: stateless, browser: BROWSER },
    ];
    for (const attempt of attempts) {
      expect((await refusal(complete(providers, attempt))).code).toBe('invalid_state');
    }
    await complete(providers, { url: back, browser: BROWSER });
    const replay = complete(providers, { url: back, browser: BROWSER });
    expect((await refusal(replay)).code).toBe('invalid_state');
    expect(idp.tokenRequests).toHaveLength(1);
  });

  it('accepts one of twenty parallel completions with one state', async () => {
    const idp = await fakeIdp();
    const providers = await connect([settingsOf(idp)]);
    const url = idp.authorize(await providers.begin('corp', { redirectTo: '/', browser: BROWSER }));
    const all = await Promise.allSettled(
      Array.from({ length: 20 }, () => complete(providers, { url, browser: BROWSER })),
    );
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(idp.tokenRequests).toHaveLength(1);
  });

  it('uses the provider that its state names, so that a code is never sent to another provider', async () => {
    const [honest, evil] = await Promise.all([fakeIdp(), fakeIdp()]);
    const providers = await connect([settingsOf(honest), settingsOf(evil, 'evil')]);
    const toEvil = await providers.begin('evil', { redirectTo: '/', browser: BROWSER });
    const back = honest.authorize(toEvil);
    await refusal(complete(providers, { url: back, browser: BROWSER }));
    expect(honest.tokenRequests).toHaveLength(0);
    expect(evil.tokenRequests).toHaveLength(1);
  });

  it('fails at PKCE with a code of another sign-in (RFC 7636 §4.6)', async () => {
    const idp = await fakeIdp();
    const providers = await connect([settingsOf(idp)]);
    const options = { redirectTo: '/', browser: BROWSER };
    const attackers = idp.authorize(await providers.begin('corp', options));
    const victims = idp.authorize(await providers.begin('corp', options));
    victims.searchParams.set('code', attackers.searchParams.get('code') ?? '');
    const error = await refusal(complete(providers, { url: victims, browser: BROWSER }));
    expect(error.code).toBe('sign_in_failed');
  });

  it.each([
    ['access_denied', 'sign_in_failed'],
    ['login_required', 'sign_in_failed'],
    ['<script>alert(1)</script>', 'sign_in_failed'],
    ['server_error', 'upstream_unavailable'],
    ['temporarily_unavailable', 'upstream_unavailable'],
  ])('with the error %s answers %s and repeats no part of it', async (error, code) => {
    const idp = await fakeIdp();
    idp.misbehaviour = {
      callback: (parameters) => {
        parameters.delete('code');
        parameters.set('error', error);
        parameters.set('error_description', 'call 555-0100 to unlock');
      },
    };
    const refused = await refusal(signIn(idp));
    expect(refused.code).toBe(code);
    expect(refused.detail).not.toMatch(/script|555/);
  });

  it('checks the `iss` response parameter, and requires it when the provider announced it (RFC 9207 §2.4)', async () => {
    const idp = await fakeIdp();
    const announced: Misbehaviour = {
      document: changed({ authorization_response_iss_parameter_supported: true }),
    };
    const sending = (iss: string): Misbehaviour => ({
      ...announced,
      callback: (parameters) => parameters.set('iss', iss),
    });
    idp.misbehaviour = sending(idp.issuer);
    expect((await signIn(idp)).email).toBe('ada@engine.test');
    for (const wrong of [announced, sending('https://evil.test')]) {
      idp.misbehaviour = wrong;
      expect((await refusal(signIn(idp))).code).toBe('sign_in_failed');
    }
    expect(idp.tokenRequests).toHaveLength(1);
  });
});
