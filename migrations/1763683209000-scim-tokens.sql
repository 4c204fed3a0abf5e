-- The tokens with which an organization's identity provider provisions people (SCIM): bound to it, kept as SHA-256 alone.
CREATE TABLE scim_tokens (
  id           uuid        PRIMARY KEY,
  org_id       uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  hash         bytea       NOT NULL UNIQUE,
  description  text        NOT NULL,
  created_by   uuid        NOT NULL, -- no foreign key: the token outlives the admin who made it
  created_at   timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,          -- to the minute
  expires_at   timestamptz NOT NULL,
  revoked_at   timestamptz
);
CREATE INDEX scim_tokens_org ON scim_tokens (org_id, id) WHERE revoked_at IS NULL;
