-- The tokens with which programs read what belongs to an organization, and rotate SCIM tokens: kept as SHA-256 alone. The row stays when
-- the token ends, so that an admin can make the successor of a token that ended with the admin who had made it.
CREATE TABLE api_tokens (
  id               uuid        PRIMARY KEY,
  org_id           uuid        NOT NULL, -- no foreign key: the table of organizations is not locked for it
  hash             bytea       NOT NULL UNIQUE,
  name             text        NOT NULL,
  scopes           text[]      NOT NULL,
  scim_token_ids   uuid[]      NOT NULL, -- the SCIM tokens that the token may rotate; a rotation puts the new id in the place of the old one
  allowed_cidrs    cidr[]      NOT NULL, -- empty: every address
  lifetime_days    integer     NOT NULL, -- the default of the successor
  created_by       uuid        NOT NULL, -- no foreign key: the row outlives the admin who made the token
  created_by_email text,
  created_at       timestamptz NOT NULL DEFAULT now(),
  last_used_at     timestamptz,          -- to the minute
  expires_at       timestamptz NOT NULL,
  revoked_at       timestamptz,
  expiry_noted_at  timestamptz,          -- when the log named the coming end
  maker_demoted_at timestamptz,          -- the token has no scope to rotate from then on
  is_orphan        boolean     NOT NULL DEFAULT false, -- it ended with the access of its maker, or after a loss of commits
  replaces         uuid                  -- the token whose successor this one is
);
CREATE INDEX api_tokens_org ON api_tokens (org_id, id);
CREATE INDEX api_tokens_maker ON api_tokens (created_by) WHERE revoked_at IS NULL;
CREATE INDEX api_tokens_replaces ON api_tokens (replaces) WHERE replaces IS NOT NULL;

ALTER TABLE secrets_to_confirm
  DROP CONSTRAINT secrets_to_confirm_secret_check,
  ADD CONSTRAINT secrets_to_confirm_kind CHECK (secret IN ('scim_token', 'api_token', 'client_secret')) NOT VALID;
