-- Enrolled security keys. `aaguid` is the one of the attestation certificate, never of authData.
CREATE TABLE authenticators (
  id                uuid        PRIMARY KEY,
  user_id           uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  credential_id     bytea       NOT NULL UNIQUE,
  public_key        text        NOT NULL, -- SPKI, PEM
  sign_count        bigint      NOT NULL,
  attestation       text        NOT NULL CHECK (attestation IN ('packed', 'fido-u2f')),
  aaguid            uuid,
  user_verification boolean     NOT NULL, -- false: the key can only ever assert presence
  transports        text[]      NOT NULL DEFAULT '{}',
  name              text        NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  last_used_at      timestamptz
);
CREATE INDEX authenticators_user ON authenticators (user_id);
