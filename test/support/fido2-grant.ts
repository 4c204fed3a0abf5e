import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from './app.js';
import type { Answer } from './client.js';
import { postForm, type DpopKey } from './oauth-flow.js';

/** The grant type by which a client presents an assertion of a security key. */
export const FIDO2 = 'urn:svc:params:oauth:grant-type:fido2';

/** The values of a token request by the FIDO2 grant. */
interface Fido2Request {
  readonly clientId: string;
  readonly scope: string;
  readonly resource?: string;
  readonly dpop?: DpopKey;
}

/**
 * Requests a token by the FIDO2 grant. It gets a challenge, signs the challenge with a security
 * key, and sends the assertion. Returns the response of the token endpoint.
 */
export async function fido2Answer(
  app: Pick<TestApp, 'client' | 'baseUrl'>,
  key: SoftwareKey,
  { clientId, scope, resource, dpop }: Fido2Request,
): Promise<Answer> {
  const challenge = await postForm(app, '/oauth/fido2/challenge', { client_id: clientId });
  if (challenge.status !== 200) return challenge;
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
