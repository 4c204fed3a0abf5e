import { hash } from 'node:crypto';
import { holderText } from '#platform/gcra/bookings.js';
import { NO_CREDENTIAL, type Hit } from './buckets/buckets.js';
import { normalizeIp } from './buckets/throttler.js';
import type { TierName } from '#platform/http/routing/route-policy.js';
import { TIERS } from './buckets/tiers.js';

/**
 * Returns the hit of a client's request, by its address. An IPv6 client is its /64, which one
 * subscriber has. Clients that have disconnected, so that their address is unknown, share one
 * bucket.
 *
 * @param holder returns the holder of the request's booking
 */
export function hitOf(
  tier: TierName,
  address: string | undefined,
  holder: () => string = () => NO_CREDENTIAL,
): Hit {
  const client = address === undefined ? 'unknown' : normalizeIp(address);
  return { bucket: `${tier} ${client}`, tier, rate: TIERS[tier], holder };
}

/** The parts of a request that decide to which holder its booking belongs. */
export interface BookingRequest {
  /**
   * The token or session of the request; undefined for a request without either. All requests
   * without one count as one credential.
   */
  readonly credential: string | undefined;
  readonly method: string;
  readonly path: string;
  /** True if the route is one whose requests go first ({@link RoutePolicy.goesFirst}). */
  readonly goesFirst: boolean;
}

/**
 * Returns the holder of a booking: hashes of the credential, and of the method and the path. All
 * requests without a credential are one holder, because otherwise one program could book every
 * place of its address by asking for many paths.
 */
export function holderOf({ credential, method, path, goesFirst }: BookingRequest): string {
  if (credential === undefined) return holderText(NO_CREDENTIAL, '', false);
  const request = digest(`${method} ${path}`).slice(0, 22);
  return holderText(digest(credential), request, goesFirst);
}

const digest = (text: string): string => hash('sha256', text, 'base64url');
