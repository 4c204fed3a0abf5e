-- The certificates that were revoked while they were valid. The list for hosts forgets them after their end, and their rows are deleted
-- later; signatures that they made, such as those of commits, stay refused. No foreign keys: the rows outlive the certificate.
CREATE TABLE ssh_revoked_signatures (
  serial         bigint      PRIMARY KEY,
  ca_fingerprint text        NOT NULL,
  revoked_at     timestamptz NOT NULL
);

CREATE FUNCTION keep_revoked_signature() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ssh_revoked_signatures VALUES (NEW.serial, NEW.ca_fingerprint, NEW.revoked_at) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_revoked_signature AFTER UPDATE OF revoked_at ON ssh_certificates FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at < NEW.valid_before) EXECUTE FUNCTION keep_revoked_signature();
