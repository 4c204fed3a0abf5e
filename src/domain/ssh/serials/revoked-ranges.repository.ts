import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * Writes the condition that a serial is in a revoked range. Hosts refuse its certificate, although
 * the row of the certificate has no revocation. PostgreSQL reads the ranges once for each
 * statement.
 */
export function isInRevokedRange(serial: SqlFragment): SqlFragment {
  return fragment`${serial} <@ (
    SELECT coalesce(range_agg(int8range(first_serial, last_serial, '[]')), '{}')
    FROM ssh_revoked_ranges WHERE carried_until > now())`;
}

/**
 * Writes the time since when a certificate of the table `c` lies in a revoked range; null if it lay
 * in none before it expired.
 */
export const IN_RANGE_SINCE = fragment`(
  SELECT min(recorded_at) FROM ssh_revoked_ranges
  WHERE c.serial BETWEEN first_serial AND last_serial AND recorded_at < c.valid_before)`;
