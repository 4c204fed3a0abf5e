import type { Config } from '#platform/config/config.js';
import { systemRandom } from '#platform/clock/random.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { listSealed, replaceSealed } from './receivers.repository.js';

/** The purpose from which the encryption key for the secrets of receivers is derived. */
const PURPOSE = 'secret of an event receiver';

/** The prefix of the secret of a webhook (Standard Webhooks, "Signature scheme"). */
const WEBHOOK_PREFIX = 'whsec_';

/** Makes the secret of a webhook: 256 random bits in base64 behind its prefix. */
export function mintWebhookSecret(): string {
  return WEBHOOK_PREFIX + systemRandom.bytes(32).toString('base64');
}

/** Returns the key of HMAC-SHA256: the decoded base64 of a webhook secret without its prefix. */
export function webhookKey(secret: string): Buffer {
  return Buffer.from(secret.slice(WEBHOOK_PREFIX.length), 'base64');
}

/** Encrypts a secret of a receiver under the present root secret, for storage. */
export function sealOfReceiver(secrets: Config['secrets'], text: string): Promise<string> {
  return sealSecret(secrets, PURPOSE, text);
}

/**
 * Decrypts a secret of a receiver.
 * @throws Error if neither the present nor the previous root secret decrypts it
 */
export async function openOfReceiver(secrets: Config['secrets'], sealed: string): Promise<string> {
  const opened = await openSecret(secrets, PURPOSE, sealed);
  if (!opened) throw new Error('the root secret does not open the secret of a receiver');
  return opened.text;
}

/**
 * Encrypts the secrets of all receivers under the present root secret, if only the previous root
 * secret decrypts them.
 */
export async function sealAgain(tx: EntityManager, secrets: Config['secrets']): Promise<void> {
  if (secrets.previousRoot === undefined) return;
  for (const one of await listSealed(tx)) {
    const opened = await openSecret(secrets, PURPOSE, one.sealed);
    if (!opened?.isOutdated) continue;
    await replaceSealed(tx, one, await sealOfReceiver(secrets, opened.text));
  }
}
