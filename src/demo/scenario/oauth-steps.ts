import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { z } from 'zod';
import type { GetOptions } from '../software-key/software-key.js';
import type { StepResult, WalkContext } from './scenario.js';
import { read, unexpected, Walker } from './http-client.js';

/** Where the demo's application is sent back to: nothing listens there, the walk reads the address alone. */
const CALLBACK = 'http://127.0.0.1/callback';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

const CLIENT = z.object({ client_id: z.string() });
const TOKENS = z.object({ access_token: z.string(), id_token: z.string() });
const DISCOVERY = z.object({ issuer: z.string(), jwks_uri: z.string() });
const JWKS = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });
const DONE = z.object({ redirect_to: z.string() });
const REQUEST = z.object({ state: z.string(), publicKey: z.custom<GetOptions>() });

/** An application registers itself, asks, is agreed to, and gets an ID token that says a security key was touched. */
export async function signInToApplication({ walker, email }: WalkContext): Promise<StepResult> {
  const application = new Walker(walker.baseUrl, '192.0.2.6');
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
  const verifier = randomBytes(32).toString('base64url');
  const nonce = randomBytes(16).toString('base64url');
  const query = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid email',
    nonce,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const page = await walker.goUntil(`/oauth/authorize?${query.toString()}`, CALLBACK);
  if (page instanceof URL)
    throw new Error('an application that registered itself was not asked about');
  if (page.status !== 200) throw unexpected(page);
  const agreed = await walker.postFor(`${page.url.pathname}/consent`, {}, DONE);
  const arrived = await walker.goUntil(agreed.redirect_to, CALLBACK);
  if (!(arrived instanceof URL)) throw unexpected(arrived);

  const tokens = await application.sendForm(
    '/oauth/token',
    {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: arrived.searchParams.get('code') ?? '',
      code_verifier: verifier,
      redirect_uri: CALLBACK,
    },
    TOKENS,
  );
  const discovery = read(await walker.go('/.well-known/openid-configuration'), DISCOVERY);
  const keys = read(await walker.go(discovery.jwks_uri), JWKS);
  const { payload } = await jwtVerify(tokens.id_token, createLocalJWKSet(keys), {
    issuer: discovery.issuer,
    audience: clientId,
  });
  const person = z.object({ email: z.string() });
  const { email: told } = await walker.getWith(tokens.access_token, '/oauth/userinfo', person);
  if (payload['hardware_verified'] !== true || payload['nonce'] !== nonce || told !== email) {
    throw new Error('the ID token does not say what was proved');
  }
  return {
    line: `an ID token for ${told}, hardware_verified, by ${(payload['amr'] as string[]).join(' + ')}`,
    result: { client_id: clientId, claims: payload },
  };
}

const DEVICE = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  interval: z.number(),
});
const TOKEN = z.object({ access_token: z.string(), scope: z.string(), expires_in: z.number() });

/** The command line asks for a code, a person approves it with a touch, and its token opens the API of the keys. */
export async function approveCommandLine({ walker, key }: WalkContext): Promise<StepResult> {
  const commandLine = new Walker(walker.baseUrl, '192.0.2.8');
  const device = await commandLine.sendForm(
    '/oauth/device',
    { client_id: 'svc-cli', scope: 'svc:credentials' },
    DEVICE,
  );
  const { state, publicKey } = await walker.postFor('/login/webauthn/start', {}, REQUEST);
  const credential = key.get(publicKey, walker.baseUrl);
  await walker.postFor('/login/webauthn/complete', { state, credential }, DONE);
  const approval = await walker.post('/device/approve', { user_code: device.user_code });
  if (approval.status !== 200) throw unexpected(approval);

  await delay(device.interval * 1000); // as a device that polls
  const token = await commandLine.sendForm(
    '/oauth/token',
    { grant_type: DEVICE_GRANT, client_id: 'svc-cli', device_code: device.device_code },
    TOKEN,
  );
  const keys = z.object({ keys: z.array(z.object({ name: z.string() })) });
  const listed = await commandLine.getWith(token.access_token, '/v1/keys', keys);
  if (listed.keys.length !== 1) throw new Error('the token of the command line opens nothing');
  return {
    line: `${device.user_code} approved with a touch; svc-cli may use ${token.scope} for ${token.expires_in} s`,
    result: {
      user_code: device.user_code,
      verification_uri: device.verification_uri,
      scope: token.scope,
      expires_in: token.expires_in,
    },
  };
}
