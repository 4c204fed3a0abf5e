import { z } from 'zod';
import { enrollKey, logInWithKey } from './ceremonies.js';
import { read, unexpected } from './http-client.js';
import type { ScenarioContext, StepResult } from './step.js';

const KEY = z.object({
  id: z.string(),
  name: z.string(),
  aaguid: z.string(),
  created_at: z.string(),
  current: z.boolean(),
  user_verification: z.literal(true),
});
const KEYS = z.object({ keys: z.array(KEY) });

const KEY_NAME = 'The demo’s own';

/**
 * Signs in at the identity provider. The service must send a user without a key to the enrollment.
 */
export async function signInUpstream(context: ScenarioContext): Promise<StepResult> {
  const { client, email, provider } = context;
  if (provider === undefined) {
    throw new Error('SVC_IDPS names other identity providers, where the demo cannot sign in');
  }
  const query = new URLSearchParams({ provider, login_hint: email });
  const page = await client.get(`/login?${query.toString()}`);
  if (page.status !== 200 || page.url.pathname !== '/enroll') throw unexpected(page);
  return {
    line: `${email}, who has no key yet, is asked to enroll one`,
    result: { email, provider, led_to: page.url.pathname },
  };
}

/**
 * Enrolls the software key with its attestation. The line of the step names the model of the key.
 */
export async function enrollSoftwareKey({ client, key }: ScenarioContext): Promise<StepResult> {
  const response = z.object({ key: KEY });
  const enrolled = await enrollKey(client, { key, name: KEY_NAME, response });
  return {
    line: `attested as model ${enrolled.key.aaguid}, PIN verified`,
    result: enrolled.key,
  };
}

/**
 * Logs out, and logs in again with the key only.
 * @throws Error if the logout did not end the session
 */
export async function logInAgain({ client, key }: ScenarioContext): Promise<StepResult> {
  const loggedOut = await client.post('/logout');
  if (loggedOut.status !== 303) throw unexpected(loggedOut);
  const page = await client.get('/account/keys');
  if (page.url.pathname !== '/login') throw new Error('logging out did not end the session');
  await logInWithKey(client, key);
  const expires = client.sessionExpires().toISOString();
  return {
    line: `logged out, then in again by the key alone; the session lasts until ${expires}`,
    result: { session_expires_at: expires },
  };
}

/** Lists the keys of the user, and checks that exactly the enrolled one is listed. */
export async function listKeys({ client }: ScenarioContext): Promise<StepResult> {
  const { keys } = read(await client.get('/v1/keys'), KEYS);
  const [only, ...others] = keys;
  if (others.length > 0 || only?.name !== KEY_NAME || !only.current) {
    throw new Error('the list is not the one key that was enrolled and has just logged in');
  }
  return { line: `one key, “${only.name}”, in use by this session`, result: { keys } };
}
