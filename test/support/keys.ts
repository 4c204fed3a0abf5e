import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';
import { rows } from './rows.js';

/**
 * Registers a further key of a user in the session of an HTTP client. Returns the response of the
 * last step.
 */
export async function addKey(
  app: Pick<TestApp, 'baseUrl'>,
  client: Client,
  key: SoftwareKey,
  name?: string,
): Promise<Answer> {
  const options = { address: newAddress() };
  const started = await client.post('/v1/keys/register/start', {}, options);
  if (started.status !== 200) return started;
  const { state, publicKey } = started.json;
  const credential = key.create(publicKey, app.baseUrl);
  return client.post('/v1/keys/register/complete', { state, credential, name }, options);
}

/** Returns the id and the name of each key of a user, the oldest key first. */
export function keysOf(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  email: string,
): Promise<{ id: string; name: string }[]> {
  return rows(
    dataSource,
    `SELECT k.id, k.name FROM authenticators k JOIN users u ON u.id = k.user_id
     WHERE u.email = $1 ORDER BY k.created_at, k.id`,
    [email],
  );
}

/** Sets the last touch of the key to a number of seconds ago, in every session of a user. */
export async function touchedAgo(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  email: string,
  seconds: number,
): Promise<void> {
  await rows(
    dataSource,
    `UPDATE sessions SET auth_time = now() - make_interval(secs => $2)
     WHERE user_id = (SELECT id FROM users WHERE email = $1)`,
    [email, seconds],
  );
}
