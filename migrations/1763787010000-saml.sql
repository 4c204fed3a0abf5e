-- The keys with which this service signs SAML requests, made by itself. The number decides between two replicas that make one at
-- once.
CREATE TABLE saml_sp_keys (
  number      integer     PRIMARY KEY CHECK (number > 0),
  sealed      text        NOT NULL, -- JWE (RFC 7516) of the PKCS#8 PEM
  certificate bytea       NOT NULL, -- DER
  made_at     timestamptz NOT NULL,
  not_after   timestamptz NOT NULL,
  CHECK (not_after > made_at)
);

-- The assertions that were accepted or refused: each works once on every replica. An accepted one waits a short time for the
-- browser that began its sign-in.
CREATE TABLE saml_assertions (
  id           bytea       PRIMARY KEY, -- SHA-256 of the issuer and the assertion's ID
  handle       bytea       UNIQUE,      -- SHA-256 of the browser's handle; null: refused
  request_id   text        NOT NULL,
  identity     jsonb,
  collected_at timestamptz,
  expires_at   timestamptz NOT NULL
);
CREATE INDEX saml_assertions_expiry ON saml_assertions (expires_at);
