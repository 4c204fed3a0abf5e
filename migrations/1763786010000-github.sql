-- The installations of the GitHub App that an organization linked. An installation belongs to one organization.
CREATE TABLE github_installations (
  id                   bigint      PRIMARY KEY, -- GitHub's own number
  org_id               uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  account_id           bigint      NOT NULL,
  owner                text        NOT NULL, -- the login of the account
  repository_selection text        NOT NULL CHECK (repository_selection IN ('all', 'selected')),
  suspended_at         timestamptz,
  changed_at           timestamptz NOT NULL, -- GitHub's updated_at of the last delivery: an older one changes nothing
  linked_by            uuid        NOT NULL,
  linked_at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX github_installations_org ON github_installations (org_id, lower(owner));

-- Every installation token that may still be valid. No foreign keys: the rows outlive the user, whose tokens GitHub must still revoke.
-- next_attempt_at makes a row a part of the queue of revocations; it is the end of the session where that is before the token's.
CREATE TABLE github_tokens (
  id              uuid        PRIMARY KEY,
  installation_id bigint      NOT NULL,
  owner           text        NOT NULL,
  user_id         uuid        NOT NULL,
  org_id          uuid        NOT NULL,
  session_id      uuid        NOT NULL,
  sealed          text        NOT NULL, -- the token, a JWE under a key derived from the root secret
  repositories    text[],
  permissions     jsonb       NOT NULL,
  issued_at       timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  next_attempt_at timestamptz,
  attempts        int         NOT NULL DEFAULT 0,
  revoke_reason   text,
  revoked_by      text,
  CHECK ((next_attempt_at IS NULL) = (revoke_reason IS NULL) AND (revoke_reason IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX github_tokens_user ON github_tokens (user_id);
CREATE INDEX github_tokens_session ON github_tokens (session_id);
CREATE INDEX github_tokens_installation ON github_tokens (installation_id);
CREATE INDEX github_tokens_queue ON github_tokens (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX github_tokens_expiry ON github_tokens (expires_at);

-- A session ends by many statements, and by the cascade from its key. Each of them ends the tokens that were issued in it.
CREATE FUNCTION queue_github_tokens_of_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE github_tokens SET next_attempt_at = '-infinity', revoke_reason = 'session ended', revoked_by = 'session'
  WHERE id IN (SELECT t.id FROM github_tokens t JOIN ended e ON e.id = t.session_id
               WHERE t.attempts = 0 AND t.next_attempt_at IS DISTINCT FROM '-infinity'
               ORDER BY t.id FOR UPDATE OF t);
  RETURN NULL;
END $$;
CREATE TRIGGER queue_github_tokens AFTER DELETE ON sessions REFERENCING OLD TABLE AS ended
  FOR EACH STATEMENT EXECUTE FUNCTION queue_github_tokens_of_sessions();

-- The ids of webhook deliveries that were applied. GitHub repeats a delivery for some days at most.
CREATE TABLE github_deliveries (
  id         uuid        PRIMARY KEY,
  expires_at timestamptz NOT NULL DEFAULT now() + interval '30 days'
);
CREATE INDEX github_deliveries_expiry ON github_deliveries (expires_at);
