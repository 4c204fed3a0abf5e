-- Every key of the SSH certificate authority that a start has found first (it signs) or behind the first (it is published). A key may sign
-- only if it is in this table, so that a new key is always published before it signs. Rows stay: the revocation list needs the public key
-- for as long as a certificate of it is revoked.
CREATE TABLE ssh_authorities (
  fingerprint  text        PRIMARY KEY, -- SHA256:…, as ssh-keygen -l prints it
  public_key   bytea,                   -- in the SSH wire encoding; null until the first start after this migration
  published_at timestamptz NOT NULL DEFAULT now(),
  signs_since  timestamptz              -- the first start that found the key in the first place
);
INSERT INTO ssh_authorities (fingerprint, published_at, signs_since)
SELECT fingerprint, created_at, created_at FROM ssh_authority;
COMMENT ON TABLE ssh_authority IS 'For replicas of versions before 0.8.0: ssh_authorities is read since.';
