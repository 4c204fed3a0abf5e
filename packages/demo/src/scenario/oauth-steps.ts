import { createHash } from 'node:crypto';
import { createLocalJWKSet, jwtVerify, type JWTPayload } from 'jose';
import { z } from 'zod';
import { systemRandom } from '@svc/stand-ins/clock';
import { HttpClient, read, unexpected } from './http-client.js';
import type { ScenarioContext, StepResult } from './step.js';

/**
 * The redirect URI of the demo's application. No server listens at it, because the step only reads
 * the code from the URL of the redirect.
 */
const CALLBACK = 'http://127.0.0.1/callback';

const CLIENT = z.object({ client_id: z.string() });
const TOKENS = z.object({ access_token: z.string(), id_token: z.string() });
const DISCOVERY = z.object({ issuer: z.string(), jwks_uri: z.string() });
const JWKS = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });
const REDIRECT = z.object({ redirect_to: z.string() });
const USER_INFO = z.object({ email: z.string() });

/**
 * Registers an application, consents to it, and gets an ID token, which says that a security key
 * was used.
 */
export async function signInToApplication(context: ScenarioContext): Promise<StepResult> {
  const { client, email } = context;
  const application = new HttpClient(client.baseUrl, '192.0.2.6');
  const { client_id: clientId } = await application.postFor(
    '/oauth/register',
    {
      client_name: 'An application of the demo',
      application_type: 'native',
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'none',
    },
    CLIENT,
  );
  const verifier = systemRandom.token();
  const nonce = systemRandom.token(16);
  const tokens = await application.sendForm(
    '/oauth/token',
    {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: await authorizationCode(client, { clientId, verifier, nonce }),
      code_verifier: verifier,
      redirect_uri: CALLBACK,
    },
    TOKENS,
  );
  const claims = await verifiedClaims(client, { idToken: tokens.id_token, clientId });
  const userInfo = await client.getWithToken(tokens.access_token, '/oauth/userinfo', USER_INFO);
  const isRight = claims['hardware_verified'] === true && claims['nonce'] === nonce;
  if (!isRight || userInfo.email !== email) {
    throw new Error('the ID token does not say what was proved');
  }
  return {
    line: `an ID token for ${email}, hardware_verified, by ${(claims['amr'] as string[]).join(' + ')}`,
    result: { client_id: clientId, claims },
  };
}

/**
 * Sends the user to the authorization endpoint, consents, and returns the code from the redirect
 * URI.
 */
async function authorizationCode(
  client: HttpClient,
  { clientId, verifier, nonce }: { clientId: string; verifier: string; nonce: string },
): Promise<string> {
  const query = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid email',
    nonce,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const page = await client.getUntil(`/oauth/authorize?${query.toString()}`, CALLBACK);
  if (page instanceof URL) {
    throw new Error('an application that registered itself was not asked about');
  }
  if (page.status !== 200) throw unexpected(page);
  const consent = await client.postFor(`${page.url.pathname}/consent`, {}, REDIRECT);
  const callback = await client.getUntil(consent.redirect_to, CALLBACK);
  if (!(callback instanceof URL)) throw unexpected(callback);
  return callback.searchParams.get('code') ?? '';
}

/** Verifies an ID token with the published keys of the service. */
async function verifiedClaims(
  client: HttpClient,
  { idToken, clientId }: { idToken: string; clientId: string },
): Promise<JWTPayload> {
  const discovery = read(await client.get('/.well-known/openid-configuration'), DISCOVERY);
  const keys = createLocalJWKSet(read(await client.get(discovery.jwks_uri), JWKS));
  const expected = { issuer: discovery.issuer, audience: clientId };
  return (await jwtVerify(idToken, keys, expected)).payload;
}
