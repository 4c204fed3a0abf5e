import { expect } from 'vitest';
import type { SoftwareKey } from '../../src/demo/software-key/software-key.js';
import type { TestApp } from './app.js';
import type { Answer } from './client.js';
import { newDpopKey, postForm, type DpopKey } from './oauth-flow.js';

/** The grant type of the FIDO2 grant. */
export const FIDO2 = 'urn:svc:params:oauth:grant-type:fido2';

/** An access token of `svc-cli`, with the key that it is bound to. */
export interface CliToken {
  readonly token: string;
  readonly dpop: DpopKey;
}

/** What a native client requests by the FIDO2 grant. */
interface Fido2Request {
  readonly clientId: string;
  readonly scope: string;
  readonly resource?: string;
  readonly dpop?: DpopKey;
}

/** Requests a token by the FIDO2 grant, with a touch of a security key. */
export async function fido2Answer(
  app: TestApp,
  key: SoftwareKey,
  { clientId, scope, resource, dpop }: Fido2Request,
): Promise<Answer> {
  const challenge = await postForm(app, '/oauth/fido2/challenge', { client_id: clientId });
  const { state, publicKey } = challenge.json as {
    state: string;
    publicKey: Parameters<SoftwareKey['get']>[0];
  };
  const credential = key.get(publicKey, `svc-native:${clientId}`);
  return postForm(
    app,
    '/oauth/token',
    {
      grant_type: FIDO2,
      client_id: clientId,
      state,
      assertion: Buffer.from(JSON.stringify(credential)).toString('base64url'),
      scope,
      ...(resource === undefined ? {} : { resource }),
    },
    dpop ? { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) } : {},
  );
}

/** Logs `svc-cli` in by the FIDO2 grant. Without a binding the token is a Bearer token. */
export async function cliToken(
  app: TestApp,
  key: SoftwareKey,
  { scope = 'svc:credentials', bound = true } = {},
): Promise<CliToken> {
  const dpop = await newDpopKey();
  const request = { clientId: 'svc-cli', scope, ...(bound ? { dpop } : {}) };
  const answer = await fido2Answer(app, key, request);
  expect([answer.status, answer.json]).toEqual([200, expect.any(Object)]);
  return { token: answer.json.access_token as string, dpop };
}
