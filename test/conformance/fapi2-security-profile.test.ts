import { createHash } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { claimsOf } from '../support/applications.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { FapiClient, type JwtOverride } from '../support/fapi-client.js';
import { CALLBACK, newClientKeys, newDpopKey, newPkce } from '../support/oauth-flow.js';

const ADA = 'ada@fapi2-sp.example';
const now = () => Math.floor(Date.now() / 1000);

/** The error codes that a module of the suite accepts. Several modules accept more than one. */
const CLIENT_REFUSED = ['invalid_client', 'invalid_request'];
const REQUEST_REFUSED = ['invalid_request', 'invalid_request_object'];

/**
 * The modules of the OpenID Foundation's plan `fapi2-security-profile-final-test-plan`
 * (private_key_jwt, DPoP, plain_fapi, openid_connect) without mutual TLS. The titles are their
 * names. docs/conformance.md lists where the other modules are tested.
 */
describe('FAPI 2.0 Security Profile Final', () => {
  let app: TestApp;
  let ada: Client;
  let client: FapiClient;
  let second: FapiClient;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
    client = await FapiClient.register(app, ADA, 'security-profile');
    second = await FapiClient.register(app, ADA, 'security-profile');
  });
  afterAll(() => app.close());

  function expectError(answer: Answer, ...errors: readonly string[]): void {
    expect([400, 401]).toContain(answer.status);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(errors).toContain(answer.json.error);
    // RFC 6749 §5.2: printable ASCII without quotation mark and backslash.
    expect(answer.json.error_description ?? '').toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/);
  }
  function expectErrorAt(outcome: URL | Answer, ...errors: readonly string[]): void {
    if (outcome instanceof URL) {
      expect(outcome.href.startsWith(CALLBACK)).toBe(true);
      expect(outcome.searchParams.has('code')).toBe(false);
      expect(outcome.searchParams.get('iss')).toBe(app.baseUrl);
      expect(errors).toContain(outcome.searchParams.get('error'));
    } else {
      expect(outcome.status).toBe(400);
      expect(outcome.headers.get('content-type')).toContain('text/html');
    }
  }
  const tokens = async (code?: string) => {
    const answer = await client.redeem(code ?? (await client.code(ada)));
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return answer.json as { access_token: string; id_token: string; token_type: string };
  };

  describe('a well-behaved client', () => {
    it('fapi2-security-profile-final-discovery-end-point-verification', async () => {
      const { json } = await app.client().get('/.well-known/openid-configuration');
      expect(json).toMatchObject({
        issuer: app.baseUrl,
        authorization_response_iss_parameter_supported: true,
        code_challenge_methods_supported: ['S256'],
        response_types_supported: ['code'],
        pushed_authorization_request_endpoint: `${app.baseUrl}/oauth/par`,
        token_endpoint: `${app.baseUrl}/oauth/token`,
      });
      expect(json.token_endpoint_auth_methods_supported).toContain('private_key_jwt');
      expect(json.dpop_signing_alg_values_supported).toEqual(
        expect.arrayContaining(['ES256', 'PS256']),
      );
      for (const name of [
        'dpop_signing_alg_values_supported',
        'token_endpoint_auth_signing_alg_values_supported',
        'request_object_signing_alg_values_supported',
      ]) {
        expect([name, json[name]]).not.toEqual([name, expect.arrayContaining(['none'])]);
        expect([name, json[name].filter((alg: string) => alg.startsWith('HS'))]).toEqual([
          name,
          [],
        ]);
        expect(json[name]).toEqual(expect.arrayContaining(['PS256', 'ES256', 'EdDSA']));
      }
      expect(json.dpop_signing_alg_values_supported).not.toContain('RS256');
    });

    it('fapi2-security-profile-final-happy-flow', async () => {
      const requestUri = await client.pushed();
      expect(requestUri).toMatch(/^urn:ietf:params:oauth:request_uri:[\w-]{22,}$/);
      const url = await client.authorize(ada, requestUri);
      if (!(url instanceof URL)) throw new Error(url.text);
      expect(url.searchParams.get('state')).toBe('the state');
      expect(url.searchParams.get('iss')).toBe(app.baseUrl);
      const {
        access_token: token,
        id_token: idToken,
        token_type: type,
      } = await tokens(url.searchParams.get('code') ?? '');
      expect(type).toBe('DPoP');
      expect(claimsOf(idToken)).toMatchObject({
        iss: app.baseUrl,
        aud: client.clientId,
        nonce: 'the nonce',
        hardware_verified: true,
      });
      expect((await client.readResource(token)).json.email).toBe(ADA);
    });

    it('fapi2-security-profile-final-user-rejects-authentication', async () => {
      // the user denies on the consent page
      const { client: stranger } = await app.enrolled('grace@elsewhere.example');
      const page = await client.authorize(stranger, await client.pushed());
      if (!(page instanceof URL)) throw new Error(page.text);
      expect(page.pathname).toMatch(/^\/interaction\//);
      const denied = await stranger.post(`${page.pathname}/deny`, {});
      const back = await stranger.get(denied.json.redirect_to as string);
      const url = new URL(back.headers.get('location') ?? '');
      expectErrorAt(url, 'access_denied');
      expect(url.searchParams.get('state')).toBe('the state');
    });

    it.each([
      [
        'fapi2-security-profile-final-ensure-authorization-request-without-state-success',
        { state: undefined },
      ],
      [
        'fapi2-security-profile-final-ensure-authorization-request-without-nonce-success',
        { nonce: undefined },
      ],
      [
        'fapi2-security-profile-final-ensure-authorization-request-with-64-char-nonce-success',
        { nonce: 'n'.repeat(64) },
      ],
      [
        'fapi2-security-profile-final-ensure-authorization-request-with-long-nonce',
        { nonce: 'n'.repeat(384) },
      ],
      [
        'fapi2-security-profile-final-ensure-authorization-request-with-long-state',
        { state: 's'.repeat(384) },
      ],
      ['fapi2-security-profile-final-ensure-other-scope-order-succeeds', { scope: 'email openid' }],
    ])('%s', async (_, parameters) => {
      const url = await client.authorize(ada, await client.pushed({ parameters }));
      if (!(url instanceof URL)) throw new Error(url.text);
      const sent = client.parameters(parameters);
      expect(url.searchParams.get('state')).toBe(sent['state'] ?? null);
      const { id_token: idToken } = await tokens(url.searchParams.get('code') ?? '');
      expect(claimsOf(idToken)['nonce']).toBe(sent['nonce']);
    });

    it('fapi2-security-profile-final-test-claims-parameter-identity-claims', async () => {
      const claims = JSON.stringify({
        id_token: { email: null },
        userinfo: { name: { essential: true } },
      });
      const code = await client.code(ada, { parameters: { claims, scope: 'openid' } });
      const { access_token: token, id_token: idToken } = await tokens(code);
      expect(claimsOf(idToken)['email']).toBe(ADA);
      expect((await client.readResource(token)).json.name).toBe('Ada');
    });

    it('fapi2-security-profile-final-access-token-type-header-case-sensitivity', async () => {
      const { access_token: token } = await tokens();
      for (const scheme of ['DPoP', 'dpop', 'DPOP']) {
        expect([scheme, (await client.readResource(token, { scheme })).status]).toEqual([
          scheme,
          200,
        ]);
      }
    });

    it('fapi2-security-profile-final-par-without-duplicate-parameters', async () => {
      // the URL of the browser has only client_id and request_uri
      const url = await client.authorize(ada, await client.pushed());
      expect(url instanceof URL && url.searchParams.has('code')).toBe(true);
    });

    it('fapi2-security-profile-final-refresh-token', async () => {
      // The service issues no refresh tokens (docs/choices/oauth.md), so that only a new touch
      // starts a new session.
      expect(await tokens()).not.toHaveProperty('refresh_token');
    });
  });

  describe('the authorization request', () => {
    it('fapi2-security-profile-final-ensure-registered-redirect-uri', async () => {
      for (const redirect_uri of [
        'https://client.example/other',
        `${CALLBACK}/`,
        `${CALLBACK}?x=y`,
        'https://client.example.evil.example/callback',
        'http://client.example/callback',
      ]) {
        expectError(
          await client.push({ parameters: { redirect_uri } }),
          'invalid_redirect_uri',
          ...REQUEST_REFUSED,
        );
      }
    });

    it('fapi2-security-profile-final-ensure-redirect-uri-in-authorization-request', async () => {
      expectError(
        await client.push({ parameters: { redirect_uri: undefined } }),
        ...REQUEST_REFUSED,
      );
    });

    it('fapi2-security-profile-final-ensure-unsigned-authorization-request-without-using-par-fails', async () => {
      const outcome = await client.authorize(ada, '', {
        request_uri: undefined,
        ...client.parameters(),
      });
      expectErrorAt(outcome, 'invalid_request');
    });

    it.each([
      ['fapi2-security-profile-final-ensure-response-type-code-idtoken-fails', 'code id_token'],
      ['fapi2-security-profile-final-ensure-response-type-token-fails', 'token'],
    ])('%s', async (_, response_type) => {
      expectError(
        await client.push({ parameters: { response_type } }),
        'unsupported_response_type',
        'unauthorized_client',
        'invalid_request',
      );
    });

    it('fapi2-security-profile-final-state-only-outside-request-object-not-used', async () => {
      const requestUri = await client.pushed({ parameters: { state: undefined } });
      const url = await client.authorize(ada, requestUri, { state: 'outside' });
      expect(url instanceof URL && url.searchParams.has('state')).toBe(false);
    });

    it('fapi2-security-profile-final-ensure-different-nonce-inside-and-outside-request-object', async () => {
      const url = await client.authorize(ada, await client.pushed(), { nonce: 'outside' });
      if (!(url instanceof URL)) throw new Error(url.text);
      const { id_token: idToken } = await tokens(url.searchParams.get('code') ?? '');
      expect(claimsOf(idToken)['nonce']).toBe('the nonce');
    });

    it('fapi2-security-profile-final-ensure-different-state-inside-and-outside-request-object', async () => {
      const url = await client.authorize(ada, await client.pushed(), { state: 'outside' });
      expect(url instanceof URL && url.searchParams.get('state')).toBe('the state');
    });
  });

  describe('pushed requests', () => {
    it('fapi2-security-profile-final-par-ensure-reused-request-uri-prior-to-auth-completion-succeeds', async () => {
      const browser = (await app.enrolled('reuse@elsewhere.example')).client;
      const requestUri = await client.pushed();
      const first = await client.authorize(browser, requestUri);
      expect(first instanceof URL && first.pathname.startsWith('/interaction/')).toBe(true);
      const again = await client.authorize(browser, requestUri);
      if (!(again instanceof URL)) throw new Error(again.text);
      const agreed = await browser.post(`${again.pathname}/consent`, {});
      const back = await browser.get(agreed.json.redirect_to as string);
      expect(new URL(back.headers.get('location') ?? '').searchParams.has('code')).toBe(true);
    });

    it('fapi2-security-profile-final-par-attempt-reuse-request_uri', async () => {
      const requestUri = await client.pushed();
      await client.authorize(ada, requestUri);
      expectErrorAt(await client.authorize(ada, requestUri), 'invalid_request_uri');
    });

    it('fapi2-security-profile-final-par-attempt-to-use-expired-request_uri', async () => {
      const requestUri = await client.pushed();
      await app.dataSource.query(
        `UPDATE oauth_artifacts SET payload = jsonb_set(payload, '{exp}', '1000000000')
         WHERE model = 'PushedAuthorizationRequest'`,
      );
      expectErrorAt(await client.authorize(ada, requestUri), 'invalid_request_uri');
    });

    it('fapi2-security-profile-final-par-attempt-to-use-request_uri-for-different-client', async () => {
      const outcome = await second.authorize(ada, await client.pushed());
      expectErrorAt(outcome, 'invalid_request_uri', ...REQUEST_REFUSED);
    });

    it('fapi2-security-profile-final-par-authorization-request-containing-request_uri-form-param', async () => {
      const fields = { request_uri: 'urn:ietf:params:oauth:request_uri:x' };
      expectError(await client.push({ fields }), 'request_uri_not_supported', ...REQUEST_REFUSED);
    });

    it('fapi2-security-profile-final-par-attempt-invalid-http-method', async () => {
      for (const method of ['PUT', 'GET', 'DELETE']) {
        const answer = await app.client().send(method, '/oauth/par', { headers: { origin: '' } });
        expect([method, answer.status]).toEqual([method, 405]);
        expect(answer.headers.get('allow')).toContain('POST');
      }
    });

    it.each<readonly [string, () => JwtOverride, boolean]>([
      [
        'fapi2-security-profile-final-par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted',
        () => ({ claims: { iat: now() + 8, nbf: now() + 8, exp: now() + 68 } }),
        true,
      ],
      [
        'fapi2-security-profile-final-par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails',
        () => ({ claims: { iat: now() + 70, nbf: now() + 70, exp: now() + 130 } }),
        false,
      ],
      [
        'fapi2-security-profile-final-par-test-array-as-audience-fails',
        () => ({ claims: { aud: [app.baseUrl, 'https://other.example'] } }),
        false,
      ],
      [
        'fapi2-security-profile-final-par-test-par-endpoint-url-as-audience-fails',
        () => ({ claims: { aud: `${app.baseUrl}/oauth/par` } }),
        false,
      ],
      [
        'fapi2-security-profile-final-par-test-token-endpoint-url-as-audience-fails',
        () => ({ claims: { aud: `${app.baseUrl}/oauth/token` } }),
        false,
      ],
    ])('%s', async (_, assertion, isTaken) => {
      const answer = await client.push({ assertion: assertion() });
      if (isTaken) expect(answer.status).toBe(201);
      else expectError(answer, ...CLIENT_REFUSED);
    });
  });

  describe('PKCE', () => {
    it('fapi2-security-profile-final-par-ensure-pkce-required', async () => {
      const parameters = { code_challenge: undefined, code_challenge_method: undefined };
      expectError(await client.push({ parameters }), 'invalid_request');
    });

    it('fapi2-security-profile-final-par-plain-pkce-rejected', async () => {
      const parameters = { code_challenge: client.pkce.verifier, code_challenge_method: 'plain' };
      expectError(await client.push({ parameters }), 'invalid_request');
      const silent = { code_challenge: client.pkce.verifier, code_challenge_method: undefined };
      expectError(await client.push({ parameters: silent }), 'invalid_request');
    });

    it('fapi2-security-profile-final-ensure-pkce-code-verifier-required', async () => {
      const code = await client.code(ada);
      expectError(
        await client.redeem(code, { fields: { code_verifier: undefined } }),
        'invalid_grant',
      );
    });

    it('fapi2-security-profile-final-incorrect-pkce-code-verifier-rejected', async () => {
      const code = await client.code(ada);
      expectError(
        await client.redeem(code, { fields: { code_verifier: newPkce().verifier } }),
        'invalid_grant',
      );
    });
  });

  describe('the token endpoint', () => {
    it('fapi2-security-profile-final-ensure-client-id-in-token-endpoint', async () => {
      const code = await client.code(ada);
      const fields = { client_id: second.clientId };
      expectError(await client.redeem(code, { fields }), ...CLIENT_REFUSED, 'invalid_grant');
    });

    it('fapi2-security-profile-final-ensure-holder-of-key-required', async () => {
      const code = await client.code(ada);
      expectError(
        await client.redeem(code, { dpop: null }),
        'invalid_grant',
        'invalid_request',
        'invalid_dpop_proof',
      );
    });

    it('fapi2-security-profile-final-ensure-authorization-code-is-bound-to-client', async () => {
      const code = await client.code(ada);
      const fields = { code_verifier: client.pkce.verifier };
      expectError(await second.redeem(code, { fields }), 'invalid_grant');
    });

    it('fapi2-security-profile-final-attempt-reuse-authorization-code-after-one-second', async () => {
      const code = await client.code(ada);
      const { access_token: token } = await tokens(code);
      await app.dataSource.query(
        "UPDATE oauth_artifacts SET consumed_at = consumed_at - interval '10 s' WHERE model = 'AuthorizationCode'",
      );
      expectError(await client.redeem(code), 'invalid_grant');
      expect((await client.readResource(token)).status).toBe(401); // RFC 6749 §4.1.2
    });

    it('fapi2-security-profile-final-ensure-token-endpoint-fails-with-expired-auth-code', async () => {
      const code = await client.code(ada);
      const [row] = await app.dataSource.query<{ life: number }[]>(
        `SELECT max((payload ->> 'exp')::int - (payload ->> 'iat')::int) AS life FROM oauth_artifacts
         WHERE model = 'AuthorizationCode'`,
      );
      expect(row?.life).toBeLessThanOrEqual(60); // FAPI 2.0 Security Profile §5.3.2.1
      await app.dataSource.query(
        `UPDATE oauth_artifacts SET payload = jsonb_set(payload, '{exp}', '1000000000') WHERE model = 'AuthorizationCode'`,
      );
      expectError(await client.redeem(code), 'invalid_grant');
    });

    it('fapi2-security-profile-final-ensure-signed-client-assertion-with-RS256-fails', async () => {
      const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
      const keys = { privateKey, jwk: { ...(await exportJWK(publicKey)), kid: 'rsa', use: 'sig' } };
      const rsa = await FapiClient.register(app, ADA, 'security-profile', {
        jwks: { keys: [client.keys.jwk, keys.jwk] },
      });
      expectError(await rsa.push({ assertion: { alg: 'RS256', keys } }), ...CLIENT_REFUSED);
    });

    it('fapi2-security-profile-final-ensure-client-assertion-in-token-endpoint', async () => {
      const code = await client.code(ada);
      const fields = { client_assertion: undefined, client_assertion_type: undefined };
      expectError(await client.redeem(code, { fields }), ...CLIENT_REFUSED);
    });

    it.each<readonly [string, () => JwtOverride]>([
      [
        'fapi2-security-profile-final-ensure-client-assertion-with-exp-is-5-minutes-in-past-fails',
        () => ({ claims: { iat: now() - 360, exp: now() - 300 } }),
      ],
      [
        'fapi2-security-profile-final-ensure-client-assertion-with-wrong-aud-fails',
        () => ({ claims: { aud: 'https://other.example/' } }),
      ],
      [
        'fapi2-security-profile-final-ensure-client-assertion-with-no-sub-fails',
        () => ({ claims: { sub: undefined } }),
      ],
      ['(beyond the plan) an assertion without jti', () => ({ claims: { jti: undefined } })],
      ['(beyond the plan) an assertion without exp', () => ({ claims: { exp: undefined } })],
      [
        '(beyond the plan) an assertion for more than 300 s',
        () => ({ claims: { exp: now() + 400 } }),
      ],
      [
        '(beyond the plan) an assertion by another issuer',
        () => ({ claims: { iss: second.clientId } }),
      ],
      ['(beyond the plan) an assertion signed by another client', () => ({ keys: second.keys })],
      ['(beyond the plan) an unsigned assertion', () => ({ alg: 'none' })],
    ])('%s', async (_, assertion) => {
      const code = await client.code(ada);
      expectError(await client.redeem(code, { assertion: assertion() }), ...CLIENT_REFUSED);
    });
  });

  describe('DPoP', () => {
    it.each([
      [
        'fapi2-security-profile-final-check-dpop-proof-nbf-exp',
        () => ({ nbf: now() - 5, exp: now() + 60 }),
      ],
      [
        'fapi2-security-profile-final-ensure-dpopproof-with-iat-10seconds-before-succeeds',
        () => ({ iat: now() - 10 }),
      ],
      [
        'fapi2-security-profile-final-ensure-dpopproof-with-iat-10seconds-after-succeeds',
        () => ({ iat: now() + 10 }),
      ],
    ])('%s', async (_, claims) => {
      const atPar = await client.proof('POST', '/oauth/par', claims());
      const code = await client.code(ada, { dpop: atPar });
      const answer = await client.redeem(code, {
        dpop: await client.proof('POST', '/oauth/token', claims()),
      });
      expect([answer.status, answer.json.token_type]).toEqual([200, 'DPoP']);
    });

    it('fapi2-security-profile-final-ensure-mismatched-dpop-jkt-fails', async () => {
      const other = await newDpopKey();
      const dpop = await client.proof('POST', '/oauth/par');
      expectError(
        await client.push({ dpop, parameters: { dpop_jkt: other.thumbprint } }),
        'invalid_request',
        'invalid_dpop_proof',
      );
    });

    it('fapi2-security-profile-final-ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt', async () => {
      const code = await client.code(ada, { dpop: await client.proof('POST', '/oauth/par') });
      const other = await newDpopKey();
      const dpop = await other.proof('POST', `${app.baseUrl}/oauth/token`);
      expectError(
        await client.redeem(code, { dpop }),
        'invalid_request',
        'invalid_grant',
        'invalid_dpop_proof',
      );
    });

    it('fapi2-security-profile-final-ensure-token-endpoint-fails-with-mismatched-dpop-jkt', async () => {
      const other = await newDpopKey();
      const code = await client.code(ada, { parameters: { dpop_jkt: other.thumbprint } });
      expectError(
        await client.redeem(code),
        'invalid_request',
        'invalid_grant',
        'invalid_dpop_proof',
      );
    });

    it('fapi2-security-profile-final-ensure-dpopproof-at-par-endpoint-binding-success', async () => {
      const code = await client.code(ada, { dpop: await client.proof('POST', '/oauth/par') });
      expect((await client.redeem(code)).status).toBe(200);
    });

    it('fapi2-security-profile-final-ensure-dpop-auth-code-binding-success', async () => {
      const code = await client.code(ada, { parameters: { dpop_jkt: client.dpop.thumbprint } });
      expect((await client.redeem(code)).status).toBe(200);
    });

    describe('fapi2-security-profile-final-dpop-negative-tests', () => {
      let token: string;
      let ath: string;
      let jwk: object;
      let key: Parameters<InstanceType<typeof SignJWT>['sign']>[0];
      beforeAll(async () => {
        const pair = await generateKeyPair('ES256', { extractable: true });
        key = pair.privateKey;
        jwk = await exportJWK(pair.publicKey);
        const proof = await new SignJWT({
          htm: 'POST',
          htu: `${app.baseUrl}/oauth/token`,
          jti: 'first',
          iat: now(),
        })
          .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
          .sign(key);
        const answer = await client.redeem(await client.code(ada), { dpop: proof });
        token = answer.json.access_token as string;
        ath = createHash('sha256').update(token).digest('base64url');
      });
      const sign = (claims: object = {}, header: object = {}, signer = key) =>
        new SignJWT({
          htm: 'GET',
          htu: `${app.baseUrl}/oauth/userinfo`,
          jti: `jti ${Math.random()}`,
          iat: now(),
          ath,
          ...claims,
        })
          .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
          .sign(signer);
      const read = (proof: string | null, scheme = 'DPoP') =>
        client.readResource(token, { proof, scheme });

      it.each<readonly [string, () => Promise<string>]>([
        ['a proof as it should be', () => sign()],
        [
          'htu with query and fragment, which are ignored',
          () => sign({ htu: `${app.baseUrl}/oauth/userinfo?a=b#c` }),
        ],
        [
          'htu in another spelling of the same address',
          () => sign({ htu: `${app.baseUrl}/oauth/./userinfo` }),
        ],
        ['unknown claims and headers', () => sign({ extra: 1 }, { extra: 'x' })],
      ])('accepted: %s', async (_, proof) => {
        expect((await read(await proof())).status).toBe(200);
      });

      it.each<readonly [string, () => Promise<string>]>([
        ['no JWT', () => Promise.resolve('not a jwt')],
        ['no typ', () => sign({}, { typ: undefined })],
        ['another typ', () => sign({}, { typ: 'jwt' })],
        ['no jwk', () => sign({}, { jwk: undefined })],
        ['no jti', () => sign({ jti: undefined })],
        ['no htm', () => sign({ htm: undefined })],
        ['no htu', () => sign({ htu: undefined })],
        ['no iat', () => sign({ iat: undefined })],
        ['no ath', () => sign({ ath: undefined })],
        ['another ath', () => sign({ ath: createHash('sha256').update('x').digest('base64url') })],
        ['another htm', () => sign({ htm: 'PUT' })],
        ['another htu', () => sign({ htu: 'https://other.example/oauth/userinfo' })],
        ['iat an hour ahead', () => sign({ iat: now() + 3600 })],
        ['iat an hour ago', () => sign({ iat: now() - 3600 })],
        [
          'it is unsigned',
          () => Promise.resolve(new UnsecuredJWT({ htm: 'GET', ath, jti: 'u' }).encode()),
        ],
        ['a signature that does not fit', async () => (await sign()).replace(/.{6}$/, 'AAAAAA')],
        [
          'a private key in its header',
          async () => {
            const pair = await generateKeyPair('ES256', { extractable: true });
            return sign({}, { jwk: await exportJWK(pair.privateKey) }, pair.privateKey);
          },
        ],
        [
          'another key',
          async () => {
            const pair = await generateKeyPair('ES256', { extractable: true });
            return sign({}, { jwk: await exportJWK(pair.publicKey) }, pair.privateKey);
          },
        ],
        [
          'RS256',
          async () => {
            const pair = await generateKeyPair('RS256', { extractable: true });
            const rsa = await exportJWK(pair.publicKey);
            return sign({}, { alg: 'RS256', jwk: rsa }, pair.privateKey);
          },
        ],
      ])('refused: %s', async (_, proof) => {
        const answer = await read(await proof());
        expect([400, 401]).toContain(answer.status);
        expect(answer.text).not.toContain(ADA);
      });

      it('refused: a replayed jti', async () => {
        const proof = await sign();
        expect((await read(proof)).status).toBe(200);
        expect((await read(proof)).status).toBe(401);
      });

      it('refused: two proofs', async () => {
        const answer = await app.client().get('/oauth/userinfo', {
          headers: { authorization: `DPoP ${token}`, dpop: `${await sign()}, ${await sign()}` },
        });
        expect([400, 401]).toContain(answer.status);
      });

      it('refused: no proof, and as a Bearer token with or without one', async () => {
        for (const [proof, scheme] of [
          [null, 'DPoP'],
          [null, 'Bearer'],
          [await sign(), 'Bearer'],
        ] as const) {
          expect([400, 401]).toContain((await read(proof, scheme)).status);
        }
      });
    });
  });

  it('(beyond the plan) an access token in the query or the body besides a header is refused', async () => {
    const { access_token: token } = await tokens();
    const answer = await app
      .client()
      .get(`/oauth/userinfo?access_token=${token}`, { address: newAddress() });
    expect([400, 401]).toContain(answer.status);
  });

  it('(beyond the plan) a key that is not registered for the client cannot sign for it', async () => {
    const keys = await newClientKeys();
    expectError(await client.push({ assertion: { keys } }), 'invalid_client');
  });
});
