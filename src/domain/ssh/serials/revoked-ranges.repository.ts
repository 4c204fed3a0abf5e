import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * Returns the SQL condition that a serial is in a revoked range. A failover can lose the rows of
 * certificates, so the service revokes the whole range of serials whose rows may be lost. Hosts
 * refuse every certificate in the range, even if its own row is not marked as revoked. PostgreSQL
 * reads the ranges once for each statement.
 */
export function isInRevokedRange(serial: SqlFragment): SqlFragment {
  return fragment`${serial} <@ (
    SELECT coalesce(range_agg(int8range(first_serial, last_serial, '[]')), '{}')
    FROM ssh_revoked_ranges WHERE carried_until > now())`;
}

/**
 * The SQL of the time from which a certificate `c` was in a revoked range; NULL if no range
 * contained it before it expired.
 */
export const IN_RANGE_SINCE = fragment`(
  SELECT min(recorded_at) FROM ssh_revoked_ranges
  WHERE c.serial BETWEEN first_serial AND last_serial AND recorded_at < c.valid_before)`;
