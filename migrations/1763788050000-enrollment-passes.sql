-- The re-enrollment pass of a user: at most one. Until it is used or expires, the user enrolls a key with it alone. A pass that was
-- withdrawn has no hash: nothing opens it, and the row still demands a pass until it expires.
CREATE TABLE enrollment_passes (
  user_id    uuid        PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  hash       bytea       CHECK (octet_length(hash) = 32), -- SHA-256
  created_by uuid,       -- the admin, who may be removed; NULL: the operator of the service
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX enrollment_passes_expires_at ON enrollment_passes (expires_at);
