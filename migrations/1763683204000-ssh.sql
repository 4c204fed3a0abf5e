-- The one certificate authority of this deployment, recorded by a conditional insert at the first start.
CREATE TABLE ssh_authority (
  only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  fingerprint text        NOT NULL, -- SHA256:…, as ssh-keygen -l prints it
  created_at  timestamptz NOT NULL DEFAULT now()
);

-- Moved forward to the clock's milliseconds by every start, never back: a restored backup never reuses a serial.
CREATE SEQUENCE ssh_certificate_serial AS bigint MAXVALUE 9007199254740991;

-- Every certificate issued. No foreign keys: the rows outlive the user, whose certificates stay revocable.
CREATE TABLE ssh_certificates (
  serial         bigint      PRIMARY KEY,
  user_id        uuid        NOT NULL,
  org_id         uuid,
  session_id     uuid        NOT NULL,
  key_id         text        NOT NULL,
  principals     text[]      NOT NULL CHECK (cardinality(principals) > 0),
  public_key     text        NOT NULL, -- fingerprint of the certified key, SHA256:…
  ca_fingerprint text        NOT NULL,
  valid_after    timestamptz NOT NULL,
  valid_before   timestamptz NOT NULL,
  issued_at      timestamptz NOT NULL DEFAULT now(),
  revoked_at     timestamptz,
  revoke_reason  text,
  revoked_by     text,
  CHECK ((revoked_at IS NULL) = (revoke_reason IS NULL) AND (revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX ssh_certificates_user ON ssh_certificates (user_id);
CREATE INDEX ssh_certificates_revoked ON ssh_certificates (valid_before) WHERE revoked_at IS NOT NULL;
