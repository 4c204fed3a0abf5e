import { unverified } from './sign-in-failure.js';

/** The seconds by which the clock of a provider may be ahead of the clock of this service. */
const SKEW = 300;

/**
 * The claims of an ID token that say for which clients (`aud`, `azp`) and at which time (`iat`) the
 * token was issued.
 */
export interface TokenReceivers {
  readonly aud?: unknown;
  readonly azp?: unknown;
  readonly iat?: unknown;
}

/**
 * Checks that an ID token was issued to this service alone (OpenID Connect Core 1.0 §3.1.3.7, items
 * 3 to 5), and not in the future. A token with a further audience is refused, even if its `azp`
 * names this service, because this service trusts no other audience.
 *
 * @param now the present time, in seconds since 1970
 * @throws DomainError sign_in_failed; the log names the claim
 */
export function assertIssuedToUs(
  { aud, azp, iat }: TokenReceivers,
  clientId: string,
  now: number,
): void {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audiences.length === 0 || audiences.some((audience) => audience !== clientId)) {
    throw unverified(new Error('the ID token has an audience (aud) that is not this client'));
  }
  if (azp !== undefined && azp !== clientId) {
    throw unverified(new Error('the ID token was issued to another client (azp)'));
  }
  if (typeof iat !== 'number' || iat > now + SKEW) {
    throw unverified(new Error('the ID token was issued more than 5 minutes in the future (iat)'));
  }
}
