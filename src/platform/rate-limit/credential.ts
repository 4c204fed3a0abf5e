import { hash } from 'node:crypto';
import { NO_CREDENTIAL } from '#platform/rate-limit/buckets/buckets.js';

/** The holder of bookings that a credential makes: its hash. A request without a credential has the holder of all of those. */
export function holderOf(credential: string | undefined): string {
  return credential === undefined ? NO_CREDENTIAL : hash('sha256', credential, 'base64url');
}
