import { createHmac } from 'node:crypto';
import { equalInConstantTime } from '#platform/crypto/opaque-token.js';

/**
 * Returns true if a webhook comes from GitHub: `X-Hub-Signature-256` is the HMAC-SHA256 of the raw
 * body under the secret of the App. The comparison always takes the same time, so that its duration
 * does not help to guess a signature.
 */
export function isSignedBy(secret: string, body: Buffer, signature: string | undefined): boolean {
  const expected = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  return equalInConstantTime(signature ?? '', expected);
}
