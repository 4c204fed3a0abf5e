import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { claimsOf } from '../support/applications.js';
import type { Answer, Client } from '../support/client.js';
import {
  FapiClient,
  withBrokenSignature,
  type Override,
  type PushOverride,
} from '../support/fapi-client.js';

const ADA = 'ada@fapi2-ms.example';
const now = () => Math.floor(Date.now() / 1000);

/**
 * The modules about signed requests and responses in the OpenID Foundation's plan
 * `fapi2-message-signing-final-test-plan` (signed_non_repudiation, jarm, private_key_jwt, DPoP).
 * The titles are the names of the modules. The plan's other modules are in
 * fapi2-security-profile.test.ts.
 */
describe('FAPI 2.0 Message Signing Final', () => {
  let app: TestApp;
  let ada: Client;
  let client: FapiClient;
  let second: FapiClient;
  let jwks: ReturnType<typeof createLocalJWKSet>;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
    const jarm = { response_modes: ['jwt', 'query.jwt'] };
    client = await FapiClient.register(app, ADA, 'message-signing', jarm);
    second = await FapiClient.register(app, ADA, 'message-signing', jarm);
    jwks = createLocalJWKSet((await app.client().get('/oauth/jwks')).json);
  });
  afterAll(() => app.close());

  const signed = (parameters: Override = {}) => ({ response_mode: 'jwt', ...parameters });
  /** Returns the content of the signed response (JARM §4.4), verified as a client does. */
  async function response(outcome: URL | Answer): Promise<JWTPayload> {
    if (!(outcome instanceof URL)) throw new Error(`the browser sees ${outcome.status}`);
    expect([...outcome.searchParams.keys()]).toEqual(['response']); // and nothing else
    const { payload, protectedHeader } = await jwtVerify(
      outcome.searchParams.get('response') ?? '',
      jwks,
      {
        issuer: app.baseUrl,
        audience: client.clientId,
        requiredClaims: ['exp'],
      },
    );
    expect(protectedHeader.alg).toBe('ES256');
    expect(Number(payload.exp) - now()).toBeLessThanOrEqual(600);
    return payload;
  }
  const push = (override: PushOverride = {}) =>
    client.push({ ...override, parameters: signed(override.parameters) });
  async function taken(override: PushOverride = {}): Promise<JWTPayload> {
    const answer = await push(override);
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    return response(await client.authorize(ada, answer.json.request_uri as string));
  }
  function expectRefused(answer: Answer, ...errors: readonly string[]): void {
    expect(answer.status).toBe(400);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(errors).toContain(answer.json.error);
  }

  describe('a well-behaved client', () => {
    it('fapi2-security-profile-final-happy-flow (signed request, JARM)', async () => {
      const payload = await taken();
      expect(payload).toMatchObject({ state: 'the state', code: expect.any(String) as string });
      const answer = await client.redeem(String(payload['code']));
      expect([answer.status, answer.json.token_type]).toEqual([200, 'DPoP']);
      expect(claimsOf(answer.json.id_token as string)['nonce']).toBe('the nonce');
    });

    it('fapi2-security-profile-final-user-rejects-authentication (JARM)', async () => {
      const { client: stranger } = await app.enrolled('grace@elsewhere-ms.example');
      const page = await client.authorize(stranger, await client.pushed({ parameters: signed() }));
      if (!(page instanceof URL)) throw new Error(page.text);
      const denied = await stranger.post(`${page.pathname}/deny`, {});
      const back = await stranger.get(denied.json.redirect_to as string);
      const payload = await response(new URL(back.headers.get('location') ?? ''));
      expect(payload).toMatchObject({ error: 'access_denied', state: 'the state' });
      expect(payload).not.toHaveProperty('code');
    });

    it.each<readonly [string, () => PushOverride]>([
      [
        'fapi2-security-profile-final-ensure-request-object-with-multiple-aud-succeeds',
        () => ({ requestObject: { claims: { aud: ['https://other1.example', app.baseUrl] } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-request-object-with-nbf-8-seconds-in-the-future-is-accepted',
        () => ({ requestObject: { claims: { nbf: now() + 8 } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-authorization-request-without-state-success (signed)',
        () => ({ parameters: { state: undefined } }),
      ],
      [
        'fapi2-security-profile-final-ensure-authorization-request-with-long-nonce (signed)',
        () => ({ parameters: { nonce: 'n'.repeat(384) } }),
      ],
      [
        'fapi2-security-profile-final-ensure-authorization-request-with-long-state (signed)',
        () => ({ parameters: { state: 's'.repeat(384) } }),
      ],
    ])('%s', async (_, override) => {
      const payload = await taken(override());
      expect(payload['code']).toEqual(expect.any(String));
      expect(payload['state']).toBe(client.parameters(override().parameters)['state']);
    });
  });

  describe('parameters outside the signed request', () => {
    it('fapi2-security-profile-final-state-only-outside-request-object-not-used (signed)', async () => {
      const requestUri = await client.pushed({ parameters: signed({ state: undefined }) });
      expect(
        await response(await client.authorize(ada, requestUri, { state: 'outside' })),
      ).not.toHaveProperty('state');
    });

    it('fapi2-security-profile-final-ensure-different-nonce-inside-and-outside-request-object (signed)', async () => {
      const payload = await taken({ fields: { nonce: 'outside' } });
      const answer = await client.redeem(String(payload['code']));
      expect(claimsOf(answer.json.id_token as string)['nonce']).toBe('the nonce');
    });

    it('fapi2-security-profile-final-ensure-different-state-inside-and-outside-request-object (signed)', async () => {
      expect((await taken({ fields: { state: 'outside' } }))['state']).toBe('the state');
    });

    it('fapi2-security-profile-final-ensure-request-object-without-redirect-uri-fails', async () => {
      const parameters = { redirect_uri: undefined };
      const fields = { redirect_uri: client.parameters()['redirect_uri'] };
      expectRefused(
        await push({ parameters, fields }),
        'invalid_request',
        'invalid_request_object',
      );
    });

    it('fapi2-security-profile-final-par-ensure-pkce-required (signed)', async () => {
      const parameters = { code_challenge: undefined };
      const fields = { code_challenge: client.pkce.challenge };
      expectRefused(
        await push({ parameters, fields }),
        'invalid_request',
        'invalid_request_object',
      );
    });
  });

  describe('refused request objects', () => {
    it.each<readonly [string, () => PushOverride]>([
      [
        'fapi2-security-profile-final-ensure-request-object-without-exp-fails',
        () => ({ requestObject: { claims: { exp: undefined } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-request-object-without-nbf-fails',
        () => ({ requestObject: { claims: { nbf: undefined } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-expired-request-object-fails',
        () => ({ requestObject: { claims: { nbf: now() - 600, exp: now() - 300 } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-request-object-with-bad-aud-fails',
        () => ({ requestObject: { claims: { aud: 'https://other.example' } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-request-object-with-exp-over-60-fails',
        () => ({ requestObject: { claims: { exp: now() + 70 * 60 } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-request-object-with-nbf-over-60-fails',
        () => ({ requestObject: { claims: { nbf: now() - 70 * 60 } } }),
      ],
      [
        'fapi2-security-profile-final-ensure-request-object-signature-algorithm-is-not-none',
        () => ({ requestObject: { alg: 'none' } }),
      ],
      [
        'fapi2-security-profile-final-ensure-request-object-with-invalid-signature-fails',
        () => ({ requestObject: { tamper: withBrokenSignature } }),
      ],
      [
        'fapi2-security-profile-final-ensure-matching-key-in-authorization-request',
        () => ({ requestObject: { keys: second.keys } }),
      ],
      [
        'fapi2-security-profile-final-par-authorization-request-containing-request_uri',
        () => ({
          requestObject: { claims: { request_uri: 'urn:ietf:params:oauth:request_uri:x' } },
        }),
      ],
      [
        '(beyond the plan) a request inside a request',
        () => ({ requestObject: { claims: { request: 'e30.e30.' } } }),
      ],
      [
        '(beyond the plan) a request object of another client',
        () => ({ requestObject: { claims: { client_id: second.clientId } } }),
      ],
      [
        '(beyond the plan) a request object by another issuer',
        () => ({ requestObject: { claims: { iss: second.clientId } } }),
      ],
    ])('%s', async (_, override) => {
      expectRefused(await push(override()), 'invalid_request_object');
    });

    it('fapi2-security-profile-final-ensure-signed-request-object-with-RS256-fails', async () => {
      const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
      const keys = { privateKey, jwk: { ...(await exportJWK(publicKey)), kid: 'rsa', use: 'sig' } };
      const rsa = await FapiClient.register(app, ADA, 'message-signing', {
        jwks: { keys: [client.keys.jwk, keys.jwk] },
      });
      expectRefused(
        await rsa.push({ requestObject: { alg: 'RS256', keys }, assertion: { keys: client.keys } }),
        'invalid_request_object',
      );
    });

    it('fapi2-security-profile-final-ensure-unsigned-request-at-par-endpoint-fails', async () => {
      expectRefused(await push({ unsigned: true }), 'invalid_request');
    });

    it('fapi2-security-profile-final-ensure-unsigned-authorization-request-without-using-par-fails (signed)', async () => {
      const outcome = await client.authorize(ada, '', {
        request_uri: undefined,
        request: await client.requestObject(client.parameters(signed())),
      });
      const payload = outcome instanceof URL ? outcome.searchParams : undefined;
      expect(payload?.has('code') ?? false).toBe(false);
    });

    it('fapi2-security-profile-final-ensure-registered-redirect-uri (signed)', async () => {
      const parameters = { redirect_uri: 'https://evil.example/callback' };
      expectRefused(
        await push({ parameters }),
        'invalid_request',
        'invalid_redirect_uri',
        'invalid_request_object',
      );
    });

    it('fapi2-security-profile-final-ensure-response-type-code-idtoken-fails (signed)', async () => {
      const parameters = { response_type: 'code id_token' };
      expectRefused(
        await push({ parameters }),
        'unsupported_response_type',
        'unauthorized_client',
        'invalid_request',
      );
    });
  });

  describe('responses', () => {
    it('(beyond the plan) a client of signed responses never gets a plain response', async () => {
      const answer = await client.push({ parameters: { response_mode: 'query' } });
      expectRefused(answer, 'invalid_request', 'unsupported_response_mode', 'unauthorized_client');
    });

    it('fapi2-security-profile-final-par-attempt-reuse-request_uri (JARM)', async () => {
      const requestUri = await client.pushed({ parameters: signed() });
      await client.authorize(ada, requestUri);
      const outcome = await client.authorize(ada, requestUri);
      if (outcome instanceof URL) {
        expect(outcome.searchParams.has('code')).toBe(false);
      } else expect(outcome.status).toBe(400);
    });

    it('(beyond the plan) introspection is signed when the client asks for it (RFC 9701 §5)', async () => {
      const payload = await taken();
      const { json } = await client.redeem(String(payload['code']));
      const fields = { ...(await client.authentication()), token: json.access_token as string };
      const answer = await app.client().send('POST', '/oauth/introspect', {
        body: new URLSearchParams(fields).toString(),
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/token-introspection+jwt',
          origin: '',
        },
      });
      expect(answer.headers.get('content-type')).toContain('application/token-introspection+jwt');
      const { payload: told, protectedHeader } = await jwtVerify(answer.text, jwks, {
        issuer: app.baseUrl,
        audience: client.clientId,
      });
      expect(protectedHeader).toMatchObject({ alg: 'ES256', typ: 'token-introspection+jwt' });
      expect(told['token_introspection']).toMatchObject({ active: true, hardware_verified: true });
    });
  });
});
