-- The certificates of the time before that are still on record.
INSERT INTO ssh_revoked_signatures (serial, ca_fingerprint, revoked_at)
SELECT serial, ca_fingerprint, revoked_at FROM ssh_certificates WHERE revoked_at IS NOT NULL AND revoked_at < valid_before
ON CONFLICT DO NOTHING;
