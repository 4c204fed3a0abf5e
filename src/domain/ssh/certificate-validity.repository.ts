import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The longest validity that a request can ask for, in seconds. It is longer than every session, and
 * keeps the intervals of PostgreSQL in range.
 */
export const LONGEST_TTL = 366 * 86_400;

/** The start: one minute ago, so that a host whose clock is slow accepts the certificate. */
export const VALID_AFTER = fragment`date_trunc('second', now()) - interval '60 seconds'`;

/**
 * The end: that of the session `s`, or the requested `k.ttl` seconds from now, or the end of the
 * last touch that a group of hosts still counts, if that is earlier.
 */
export const validBefore = (endOfTouch: SqlFragment): SqlFragment =>
  fragment`date_trunc('second', least(s.expires_at, now() + make_interval(secs => k.ttl), ${endOfTouch}))`;
