import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The longest validity that a request can ask for, in seconds; a longer one is shortened to this.
 * It is longer than every session, and small enough for PostgreSQL to compute with it as an
 * interval.
 */
export const LONGEST_TTL = 366 * 86_400;

/**
 * The SQL time at which the validity of a certificate begins: one minute ago, so that a host whose
 * clock is slow accepts the certificate.
 */
export const VALID_AFTER = fragment`date_trunc('second', now()) - interval '60 seconds'`;

/**
 * Returns the SQL time at which the validity of a certificate ends. It is the earliest of the end
 * of the session `s`, the requested `k.ttl` seconds from now, and `endOfTouch`. At `endOfTouch` the
 * touch of the security key becomes too old for a group of hosts. A time that is NULL sets no
 * limit.
 */
export const validBefore = (endOfTouch: SqlFragment): SqlFragment =>
  fragment`date_trunc('second', least(s.expires_at, now() + make_interval(secs => k.ttl), ${endOfTouch}))`;
