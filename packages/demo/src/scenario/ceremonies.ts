import { z } from 'zod';
import type { CreateOptions, GetOptions, SoftwareKey } from '@svc/stand-ins/software-key';
import type { HttpClient } from './http-client.js';

const CREATION = z.object({ state: z.string(), publicKey: z.custom<CreateOptions>() });
const REQUEST = z.object({ state: z.string(), publicKey: z.custom<GetOptions>() });
const REDIRECT = z.object({ redirect_to: z.string() });

/**
 * A key for WebAuthn ceremonies: the software key itself, or an object that also stores the state
 * of the software key after each use.
 */
export type PluggedInKey = Pick<SoftwareKey, 'create' | 'get'>;

/**
 * Enrolls the key for the signed-in user, and returns the response of the service as the given
 * schema.
 */
export async function enrollKey<Schema extends z.ZodType>(
  client: HttpClient,
  { key, name, response }: { key: PluggedInKey; name: string; response: Schema },
) {
  const { state, publicKey } = await client.postFor('/enroll/webauthn/start', {}, CREATION);
  const credential = key.create(publicKey, client.baseUrl);
  return client.postFor('/enroll/webauthn/complete', { state, credential, name }, response);
}

/**
 * Logs in with the key. If the client already has a session of the same user, no new session
 * begins. Only the time of the last touch in that session is renewed.
 */
export async function logInWithKey(client: HttpClient, key: PluggedInKey): Promise<void> {
  const { state, publicKey } = await client.postFor('/login/webauthn/start', {}, REQUEST);
  const credential = key.get(publicKey, client.baseUrl);
  await client.postFor('/login/webauthn/complete', { state, credential }, REDIRECT);
}
