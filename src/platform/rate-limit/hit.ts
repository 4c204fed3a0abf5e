import { hash } from 'node:crypto';
import { holderText } from '#platform/gcra/bookings.js';
import { NO_CREDENTIAL, type Hit } from './buckets/buckets.js';
import { normalizeIp } from './buckets/throttler.js';
import type { TierName } from '#platform/http/routing/route-policy.js';
import { TIERS } from './buckets/tiers.js';

/**
 * Returns the bucket and rate for a client's request, by the client's IP address. An IPv6 client is
 * a /64 network, which one subscriber has. Clients that have disconnected, so that their address is
 * unknown, share one bucket.
 *
 * @param holder returns the text of the request as the holder of a booking, see {@link holderOf}
 */
export function hitOf(
  tier: TierName,
  address: string | undefined,
  holder: () => string = () => NO_CREDENTIAL,
): Hit {
  const client = address === undefined ? 'unknown' : normalizeIp(address);
  return { bucket: `${tier} ${client}`, tier, rate: TIERS[tier], holder };
}

/** The parts of a request from which the holder of its booking is made. */
export interface BookingRequest {
  /**
   * The token or session of the request; undefined for a request without either. All requests
   * without one count as one credential.
   */
  readonly credential: string | undefined;
  readonly method: string;
  readonly path: string;
  /** True if the route's requests go before others ({@link RoutePolicy.goesFirst}). */
  readonly goesFirst: boolean;
}

/**
 * Returns the holder of a booking as text, which has a hash of the credential, and a hash of the
 * method and path. All requests without a credential are one holder. Otherwise one program could
 * take all bookings of its IP address by requests for many paths.
 */
export function holderOf({ credential, method, path, goesFirst }: BookingRequest): string {
  if (credential === undefined) return holderText(NO_CREDENTIAL, '', false);
  const request = digest(`${method} ${path}`).slice(0, 22);
  return holderText(digest(credential), request, goesFirst);
}

const digest = (text: string): string => hash('sha256', text, 'base64url');
