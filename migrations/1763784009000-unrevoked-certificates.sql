-- A removal revokes every certificate of the user that is not revoked yet, expired ones too, in batches by serial. The index holds what
-- such a removal reads and nothing else: certificates leave it when they are revoked.
CREATE INDEX ssh_certificates_unrevoked ON ssh_certificates (user_id, serial) WHERE revoked_at IS NULL;
DROP INDEX ssh_certificates_user;
