import { exportJWK } from 'jose';
import * as oauth from 'oauth4webapi';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Client } from '../../support/client.js';
import { CALLBACK, authorize } from '../../support/oauth-flow.js';

const ADA = 'ada@oauth4webapi.example';
const RESOURCE = 'https://orders.example/api';

describe('oauth4webapi against the running server', () => {
  let app: TestApp;
  let as: oauth.AuthorizationServer;
  let ada: Client;
  let key: SoftwareKey;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada, key } = await app.enrolled(ADA));
    const issuer = new URL(app.baseUrl);
    as = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { ...options(), algorithm: 'oauth2' }),
    );
  });
  afterAll(() => app.close());

  it('completes the FAPI cycle: PAR, PKCE, DPoP with nonces, private_key_jwt, signed introspection', async () => {
    const keys = await oauth.generateKeyPair('ES256', { extractable: true });
    const jwk = { ...(await exportJWK(keys.publicKey)), alg: 'ES256', kid: 'one', use: 'sig' };
    const { clientId } = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'private_key_jwt',
        svc_profile: 'fapi2',
        jwks: { keys: [jwk] },
        require_pushed_authorization_requests: true,
        dpop_bound_access_tokens: true,
        svc_resource_scopes: 'orders:read',
      },
      { owner: ADA },
    );
    const client: oauth.Client = {
      client_id: clientId,
      id_token_signed_response_alg: 'ES256',
      introspection_signed_response_alg: 'ES256',
    };
    const authentication = oauth.PrivateKeyJwt({ key: keys.privateKey, kid: 'one' });
    const DPoP = oauth.DPoP(client, await oauth.generateKeyPair('ES256'));
    const verifier = oauth.generateRandomCodeVerifier();
    const nonce = oauth.generateRandomNonce();
    const pushed = await oauth.processPushedAuthorizationResponse(
      as,
      client,
      await oauth.pushedAuthorizationRequest(
        as,
        client,
        authentication,
        {
          response_type: 'code',
          redirect_uri: CALLBACK,
          scope: 'openid orders:read',
          resource: RESOURCE,
          nonce,
          code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        },
        { ...options(), DPoP },
      ),
    );
    const url = await authorize(ada, { client_id: clientId, request_uri: pushed.request_uri });
    const parameters = oauth.validateAuthResponse(as, client, url, oauth.expectNoState);
    const redeem = (resource: Record<string, string>) =>
      oauth.authorizationCodeGrantRequest(
        as,
        client,
        authentication,
        parameters,
        CALLBACK,
        verifier,
        {
          ...options(),
          DPoP,
          additionalParameters: resource,
        },
      );
    const tokens = await oauth.processAuthorizationCodeResponse(
      as,
      client,
      await redeem({ resource: RESOURCE }),
      {
        expectedNonce: nonce,
        requireIdToken: true,
      },
    );
    expect(tokens).toMatchObject({
      token_type: 'dpop',
      scope: 'openid orders:read',
      expires_in: 300,
    });

    // Verifies the token like a resource server, by the published keys alone (RFC 9068 §4, RFC 9449
    // §7).
    let claims: oauth.JWTAccessTokenClaims | undefined;
    await oauth.protectedResourceRequest(
      tokens.access_token,
      'GET',
      new URL(RESOURCE),
      undefined,
      undefined,
      {
        DPoP,
        [oauth.customFetch]: async (address, { headers, method }) => {
          const request = new Request(address, { headers: new Headers(headers), method });
          claims = await oauth.validateJwtAccessToken(as, request, RESOURCE, {
            ...options(),
            requireDPoP: true,
          });
          return new Response('{}');
        },
      },
    );
    expect(claims).toMatchObject({
      aud: RESOURCE,
      client_id: clientId,
      email: ADA,
      scope: 'openid orders:read',
      hardware_verified: true,
      amr: ['hwk', 'pin', 'user'],
      acr: 'urn:nist:authentication:assurance-level:aal3',
    });

    const introspected = await oauth.introspectionRequest(
      as,
      client,
      authentication,
      tokens.access_token,
      {
        ...options(),
        requestJwtResponse: true,
      },
    );
    expect(introspected.headers.get('content-type')).toContain(
      'application/token-introspection+jwt',
    );
    const state = await oauth.processIntrospectionResponse(as, client, introspected);
    expect(state).toMatchObject({
      active: true,
      aud: RESOURCE,
      sub: claims?.sub,
      hardware_verified: true,
    });
    await oauth.validateApplicationLevelSignature(as, introspected, options());

    await oauth.processRevocationResponse(
      await oauth.revocationRequest(as, client, authentication, tokens.access_token, options()),
    );
    const after = await oauth.introspectionRequest(
      as,
      client,
      authentication,
      tokens.access_token,
      {
        ...options(),
        requestJwtResponse: false,
      },
    );
    expect((await oauth.processIntrospectionResponse(as, client, after)).active).toBe(false);
  });

  it('completes the device flow of svc-cli, whose token opens the API', async () => {
    const client: oauth.Client = { client_id: 'svc-cli' };
    const device = await oauth.processDeviceAuthorizationResponse(
      as,
      client,
      await oauth.deviceAuthorizationRequest(
        as,
        client,
        oauth.None(),
        { scope: 'svc:credentials' },
        options(),
      ),
    );
    const ask = async () =>
      oauth.processDeviceCodeResponse(
        as,
        client,
        await oauth.deviceCodeGrantRequest(as, client, oauth.None(), device.device_code, options()),
      );
    await expect(ask()).rejects.toMatchObject({ error: 'authorization_pending' });
    await expect(ask()).rejects.toMatchObject({ error: 'slow_down' });
    await ada.logIn(key); // the approval demands a touch within the last minute
    const approved = await ada.post('/device/approve', { user_code: device.user_code });
    expect(approved.status).toBe(200);
    await app.dataSource.query(
      "UPDATE oauth_artifacts SET polled_at = polled_at - interval '1 minute'",
    );
    const { access_token: token } = await ask();
    const keys = await oauth.protectedResourceRequest(
      token,
      'GET',
      new URL('/v1/keys', app.baseUrl),
      undefined,
      undefined,
      options(),
    );
    expect(keys.status).toBe(200);
  });

  it('registers a client, and finds the protected APIs and their server', async () => {
    const client = await oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(
        as,
        { redirect_uris: [CALLBACK], client_name: 'A visitor', token_endpoint_auth_method: 'none' },
        options(),
      ),
    );
    expect(client).toMatchObject({ grant_types: ['authorization_code'], client_name: 'A visitor' });
    const resource = new URL(app.baseUrl);
    const found = await oauth.processResourceDiscoveryResponse(
      resource,
      await oauth.resourceDiscoveryRequest(resource, options()),
    );
    expect(found.authorization_servers).toEqual([app.baseUrl]);
  });
});

/**
 * Returns options that allow plain HTTP, for loopback, and give each request an address of its own.
 */
function options() {
  return {
    [oauth.allowInsecureRequests]: true,
    headers: new Headers({ 'x-forwarded-for': newAddress() }),
  };
}
