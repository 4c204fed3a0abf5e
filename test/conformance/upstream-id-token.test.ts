import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { changed, type Json, type Misbehaviour } from '../support/fake-idp.js';
import {
  upstreamSuite,
  BROWSER,
  complete,
  fakeIdp,
  refusal,
  settingsOf,
} from '../support/upstream.js';

const { connect, signIn } = upstreamSuite();

describe('the ID token (OIDC Core §3.1.3.7)', () => {
  const now = Math.floor(Date.now() / 1000);
  const wrong: [string, Json][] = [
    ['of another issuer', { iss: 'https://evil.test' }],
    ['for another client', { aud: 'other-client' }],
    ['for several clients with another authorized party', { aud: ['svc', 'x'], azp: 'x' }],
    ['for several clients without an authorized party', { aud: ['svc', 'x'] }],
    [
      'for another client beside this one, as its authorized party',
      { aud: ['svc', 'x'], azp: 'svc' },
    ],
    ['for this client with another authorized party', { azp: 'x' }],
    ['for this client with an empty authorized party', { azp: '' }],
    ['for this client with an authorized party that is no text', { azp: ['svc'] }],
    ['for no client', { aud: [] }],
    ['issued 6 minutes ahead', { iat: now + 360, exp: now + 600 }],
    ['without the time of its issue', { iat: undefined }],
    ['with another nonce', { nonce: randomBytes(32).toString('base64url') }],
    ['without a nonce', { nonce: undefined }],
    ['that has expired', { exp: now - 60 }],
    ['without an expiry', { exp: undefined }],
    ['not valid yet', { nbf: now + 3600 }],
    ['without a subject', { sub: undefined }],
  ];
  it.each(wrong)('%s is refused', async (_what, patch) => {
    const idp = await fakeIdp({ misbehaviour: { claims: changed(patch) } });
    expect((await refusal(signIn(idp))).code).toBe('sign_in_failed');
  });

  const right: [string, Json][] = [
    ['with its one audience in a list', { aud: ['svc'] }],
    ['that names this client as its authorized party', { azp: 'svc' }],
    ['issued 4 minutes ahead', { iat: now + 240, exp: now + 600 }],
  ];
  it.each(right)('%s is accepted', async (_what, patch) => {
    const idp = await fakeIdp({ misbehaviour: { claims: changed(patch) } });
    expect((await signIn(idp)).email).toBe('ada@engine.test');
  });

  it.each(['foreign key', 'HS256', 'none'] as const)(
    'signed with %s is refused',
    async (signature) => {
      const idp = await fakeIdp({ misbehaviour: { signature } });
      expect((await refusal(signIn(idp))).code).toBe('sign_in_failed');
    },
  );

  it('signed with HS256 is refused even where the document allows it', async () => {
    const idp = await fakeIdp();
    idp.misbehaviour = {
      signature: 'HS256',
      document: changed({ id_token_signing_alg_values_supported: ['HS256', 'ES256'] }),
    };
    expect((await refusal(signIn(idp))).code).toBe('sign_in_failed');
  });

  it('10.22 signed with a newly rotated key of the provider is accepted at once', async () => {
    const idp = await fakeIdp();
    const providers = await connect([settingsOf(idp)]);
    const comesBack = async () => {
      const url = await providers.begin('corp', { redirectTo: '/', browser: BROWSER });
      return complete(providers, { url: idp.authorize(url), browser: BROWSER });
    };
    await comesBack();
    await comesBack();
    expect(idp.keySetRequests).toBe(1);
    await idp.rotateKey();
    expect((await comesBack()).identity.email).toBe('ada@engine.test');
    expect(idp.keySetRequests).toBe(2);
    await idp.rotateKey();
    // within five seconds, the key set is not fetched again
    expect((await refusal(comesBack())).code).toBe('sign_in_failed');
    expect(idp.keySetRequests).toBe(2);
  });

  it('is refused when it is missing', async () => {
    const body = { access_token: 'x', token_type: 'Bearer' };
    const idp = await fakeIdp({ misbehaviour: { token: { status: 200, body } } });
    expect((await refusal(signIn(idp))).code).toBe('sign_in_failed');
  });

  it('is refused with an unverified e-mail', async () => {
    const claims = changed({ email_verified: false });
    const idp = await fakeIdp({ misbehaviour: { claims } });
    expect((await refusal(signIn(idp))).code).toBe('sign_in_refused');
  });
});

describe('userinfo (OIDC Core §5.3)', () => {
  const claims = changed({ email: undefined });
  const userinfo = { sub: 'subject-1', email: 'ada@engine.test', email_verified: true };

  it('supplies the e-mail that the ID token lacks', async () => {
    const idp = await fakeIdp({ misbehaviour: { claims, userinfo } });
    expect((await signIn(idp)).email).toBe('ada@engine.test');
  });

  it('is refused for another subject (§5.3.2)', async () => {
    const idp = await fakeIdp({ misbehaviour: { claims, userinfo: { ...userinfo, sub: 'eve' } } });
    expect((await refusal(signIn(idp))).code).toBe('sign_in_failed');
  });

  it('does not supply an address that only the ID token calls verified', async () => {
    const unverified = { ...userinfo, email_verified: undefined };
    const idp = await fakeIdp({ misbehaviour: { claims, userinfo: unverified } });
    expect((await refusal(signIn(idp))).code).toBe('sign_in_refused');
  });

  it('is required for a sign-in whose ID token has no e-mail', async () => {
    const idp = await fakeIdp({ misbehaviour: { claims } });
    expect((await refusal(signIn(idp))).code).toBe('sign_in_refused');
  });
});

describe('a fault of the provider is upstream_unavailable, and not a fault of the user', () => {
  const faults: [string, Misbehaviour][] = [
    [
      'the token endpoint answering 500',
      { token: { status: 500, body: 'oops', contentType: 'text/html' } },
    ],
    [
      'the token endpoint answering 503 in JSON',
      { token: { status: 503, body: { error: 'temporarily_unavailable' } } },
    ],
    [
      'the client secret being refused',
      { token: { status: 401, body: { error: 'invalid_client' } } },
    ],
    [
      'the token endpoint answering HTML',
      { token: { status: 200, body: '<p>', contentType: 'text/html' } },
    ],
    [
      'the token endpoint answering a megabyte',
      { token: { status: 200, body: ' '.repeat(2 ** 20 + 1) } },
    ],
    ['the key set being away', { jwks: { status: 500, body: {} } }],
    ['the key set being garbage', { jwks: { status: 200, body: 'x' } }],
  ];
  it.each(faults)('%s', async (_what, misbehaviour) => {
    const idp = await fakeIdp({ misbehaviour });
    const error = await refusal(signIn(idp));
    expect(error.code).toBe('upstream_unavailable');
    expect(error.detail).not.toMatch(/oops|invalid_client|127\.0\.0\.1/);
    expect(error.cause).toBeDefined();
  });

  it('the provider is unreachable', async () => {
    const idp = await fakeIdp();
    const providers = await connect([settingsOf(idp)]);
    const url = idp.authorize(await providers.begin('corp', { redirectTo: '/', browser: BROWSER }));
    await idp.close();
    const error = await refusal(complete(providers, { url, browser: BROWSER }));
    expect(error.code).toBe('upstream_unavailable');
  });
});
