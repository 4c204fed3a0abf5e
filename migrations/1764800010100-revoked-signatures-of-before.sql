-- batches of ssh_certificates by serial where revoked_at < valid_before
-- The certificates that were revoked before, as far as they are still on record.
INSERT INTO ssh_revoked_signatures (serial, ca_fingerprint, revoked_at)
SELECT serial, ca_fingerprint, revoked_at FROM ssh_certificates
WHERE serial BETWEEN current_setting('migration.first')::bigint AND current_setting('migration.last')::bigint
  AND revoked_at < valid_before
ON CONFLICT DO NOTHING;
