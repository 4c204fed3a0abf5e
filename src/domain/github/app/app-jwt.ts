import { createPrivateKey } from 'node:crypto';
import { SignJWT } from 'jose';
import type { Clock } from '#platform/clock/clock.js';
import type { GitHubSettings } from '#platform/config/config.js';

/**
 * The lifetime of the JWT, in seconds. GitHub refuses a JWT that expires more than 10 minutes after
 * the time of GitHub's clock.
 */
const LIFETIME = 570;
/**
 * The number of seconds by which the JWT begins in the past. GitHub refuses a JWT that begins after
 * the time of GitHub's clock, and the clocks may differ.
 */
const DRIFT = 30;

/**
 * Returns a function that makes the JWT by which the GitHub App identifies itself to GitHub
 * (RS256). GitHub allows at most 10 minutes between `iat` and `exp`.
 *
 * @throws Error if the key of the App is no private key
 */
export function appJwtSigner(
  { appId, appKey }: Pick<GitHubSettings, 'appId' | 'appKey'>,
  clock: Clock,
): () => Promise<string> {
  const key = createPrivateKey(appKey);
  return () => {
    const now = clock.seconds();
    return new SignJWT()
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
      .setIssuedAt(now - DRIFT)
      .setExpirationTime(now + LIFETIME)
      .setIssuer(appId)
      .sign(key);
  };
}
