-- The SSH keys of which a security key proved by its attestation that they are in it. A key attests itself once, when it is made, so
-- a later certificate for the same key of the same user rests on this row. The rows end with the account.
CREATE TABLE ssh_attested_keys (
  user_id         uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  public_key      text        NOT NULL, -- fingerprint of the key, SHA256:…
  aaguid          uuid,                 -- the model, as the attestation certificate states it
  model           text,
  verify_required boolean     NOT NULL, -- the security key demands its PIN or fingerprint for each signature
  attested_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, public_key)
);

-- Whether the certified key was attested, and by which model; whether the certificate has the critical option verify-required.
ALTER TABLE ssh_certificates
  ADD COLUMN attested        boolean NOT NULL DEFAULT false,
  ADD COLUMN verify_required boolean NOT NULL DEFAULT false,
  ADD COLUMN aaguid          uuid,
  ADD CHECK (attested OR (NOT verify_required AND aaguid IS NULL));
