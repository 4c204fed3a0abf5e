import { createLocalJWKSet, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose';
import { expect } from 'vitest';
import type { TestApp } from './app.js';
import type { Application } from './applications.js';
import { newAddress, type Client } from './client.js';
import { authorize, CALLBACK, newPkce, parameterOf, postForm } from './oauth-flow.js';
import { rows } from './rows.js';

/**
 * Registers a web application of a user by the API. The members of `body` are added to the request,
 * or replace its usual ones.
 */
export async function registerApplication(
  owner: Client,
  body: Readonly<Record<string, unknown>>,
): Promise<Application> {
  const wanted = {
    name: 'Told',
    type: 'web',
    redirect_uris: [CALLBACK],
    auth_method: 'client_secret_post',
    ...body,
  };
  const answer = await owner.post('/api/v1/applications', wanted, { address: newAddress() });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  const { client_id: clientId, client_secret: clientSecret } = answer.json as Record<
    string,
    string
  >;
  return { clientId: clientId ?? '', clientSecret: clientSecret ?? '' };
}

/** The access token of a sign-in, and the verified claims of its ID token. */
export interface SignedIn {
  readonly claims: JWTPayload;
  readonly accessToken: string;
}

/**
 * Signs a user in to an application by the session in the user's browser. Verifies the ID token.
 */
export async function signInTo(
  app: TestApp,
  browser: Client,
  { clientId, clientSecret }: Application,
  parameters: Readonly<Record<string, string>> = {},
): Promise<SignedIn> {
  const { verifier, challenge } = newPkce();
  const sent = await authorize(browser, {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...parameters,
  });
  const answer = await postForm(app, '/oauth/token', {
    grant_type: 'authorization_code',
    code: parameterOf(sent, 'code'),
    code_verifier: verifier,
    redirect_uri: CALLBACK,
    client_id: clientId,
    client_secret: clientSecret,
  });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  const { id_token: idToken, access_token: accessToken } = answer.json as Record<string, string>;
  const jwks = createLocalJWKSet(await jwksOf(app));
  // If a test has moved the service's clock past the end of the session, an ID token is valid for
  // only a second. So this check accepts a token until 60 seconds after its expiry.
  const options = { issuer: app.baseUrl, audience: clientId, clockTolerance: 60 };
  const { payload } = await jwtVerify(idToken ?? '', jwks, options);
  return { claims: payload, accessToken: accessToken ?? '' };
}

/** Fetches the JWK Set of the service. */
export async function jwksOf(app: TestApp): Promise<JSONWebKeySet> {
  return (await app.client().get('/oauth/jwks')).json as JSONWebKeySet;
}

/** A row of the queue of logout notices to applications. */
export interface NoticeRow {
  readonly id: string;
  readonly client_id: string;
  readonly sid: string | null;
  readonly tries: number;
  readonly refusals: number;
  readonly dead: boolean;
  readonly last_result: string | null;
  readonly next_attempt_at: Date;
}

/** Returns the queued logout notices about a user, the oldest first. */
export function noticesAbout(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  userId: string,
): Promise<NoticeRow[]> {
  return rows<NoticeRow>(
    dataSource,
    `SELECT id, client_id, sid, tries, refusals, dead_at IS NOT NULL AS dead, last_result,
            CASE WHEN isfinite(next_attempt_at) THEN next_attempt_at END AS next_attempt_at
     FROM logout_notices WHERE user_id = $1 ORDER BY id`,
    [userId],
  );
}
