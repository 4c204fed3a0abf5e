-- A session is a row, looked up live by every use of its token; deleting the row ends it at once, on every replica.
-- bootstrap: signed in upstream only (of a user, or of a pending identity nobody has yet); verified: a key asserted.
CREATE TABLE sessions (
  id               uuid        PRIMARY KEY,
  token_hash       bytea       NOT NULL UNIQUE, -- SHA-256 of the 256-bit token
  level            text        NOT NULL CHECK (level IN ('bootstrap', 'verified')),
  user_id          uuid        REFERENCES users (id) ON DELETE CASCADE,
  pending_identity jsonb,
  authenticator_id uuid        REFERENCES authenticators (id) ON DELETE CASCADE,
  amr              text[]      NOT NULL DEFAULT '{}',
  acr              text,
  auth_time        timestamptz,
  created_at       timestamptz NOT NULL DEFAULT now(),
  expires_at       timestamptz NOT NULL,
  CHECK ((user_id IS NULL) <> (pending_identity IS NULL)),
  CHECK (level = 'bootstrap' OR (user_id IS NOT NULL AND authenticator_id IS NOT NULL AND auth_time IS NOT NULL))
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Single-use tokens that were spent: WebAuthn states and upstream sign-in states, by their random id. A row is kept
-- until the token would have expired anyway.
CREATE TABLE spent_tokens (
  id         uuid        PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX spent_tokens_expiry ON spent_tokens (expires_at);
