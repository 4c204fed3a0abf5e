-- The keys that sign tokens where the operator sets none: made by the first start, sealed under the root secret, so that
-- replicas and restarts agree.
CREATE TABLE token_signing_keys (
  kind       text        PRIMARY KEY CHECK (kind IN ('ec', 'rsa')),
  sealed     text        NOT NULL, -- JWE (RFC 7516) of the PKCS#8 PEM
  created_at timestamptz NOT NULL DEFAULT now()
);
