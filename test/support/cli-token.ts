import { expect } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from './app.js';
import type { Answer } from './client.js';
import { fido2Answer } from './fido2-grant.js';
import { newDpopKey, postForm, type DpopKey } from './oauth-flow.js';

/**
 * An access token of `svc-cli`, and the DPoP key to which it is bound, unless it is a Bearer token.
 */
export interface CliToken {
  readonly token: string;
  readonly dpop: DpopKey;
}

/**
 * Logs `svc-cli` in by the FIDO2 grant: a security key signs an assertion without a browser. With
 * `bound: false`, the token is a Bearer token.
 */
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

/** Exchanges a token of `svc-cli` for a token of a Kubernetes cluster. Returns the answer. */
export async function clusterToken(
  app: TestApp,
  { token, dpop }: CliToken,
  resource: string,
): Promise<Answer> {
  return postForm(
    app,
    '/oauth/token',
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      client_id: 'svc-cli',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      resource,
    },
    { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) },
  );
}
