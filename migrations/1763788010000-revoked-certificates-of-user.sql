-- The certificates of a user, for an export: those that are not revoked have an index already. Issuance does not write this one.
CREATE INDEX ssh_certificates_revoked_of_user ON ssh_certificates (user_id, serial) WHERE revoked_at IS NOT NULL;
