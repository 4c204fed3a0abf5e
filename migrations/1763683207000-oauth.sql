-- OAuth 2.0 and OpenID Connect. What is issued hangs on a grant, the grant on the hardware-verified session behind it, and
-- the session on the user: deleting one deletes all that hangs on it, in that statement, and nothing can be added to what is
-- gone. Secrets (codes, tokens, device codes, client secrets) are kept as SHA-256 alone.

CREATE TABLE oauth_clients (
  id           text        PRIMARY KEY, -- client_id
  -- first-party: ours; application: a person registered it; dynamic: it registered itself (RFC 7591)
  kind         text        NOT NULL CHECK (kind IN ('first-party', 'application', 'dynamic')),
  metadata     jsonb       NOT NULL,    -- RFC 7591 §2, without a secret
  owner_id     uuid        REFERENCES users (id) ON DELETE CASCADE,
  org_id       uuid        REFERENCES organizations (id) ON DELETE CASCADE,
  created_at   timestamptz NOT NULL DEFAULT now(),
  updated_at   timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz NOT NULL DEFAULT now(), -- to the day: a dynamic client that is not used for 30 expires
  CHECK ((kind = 'application') = (owner_id IS NOT NULL))
);
CREATE INDEX oauth_clients_owner ON oauth_clients (owner_id);
CREATE INDEX oauth_clients_org ON oauth_clients (org_id);

CREATE TABLE oauth_client_secrets (
  id         uuid        PRIMARY KEY,
  client_id  text        NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  hash       bytea       NOT NULL, -- SHA-256 of 256 random bits
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz           -- set when it is rotated out
);
CREATE INDEX oauth_client_secrets_client ON oauth_client_secrets (client_id);

-- Our command-line client: device and FIDO2 grants, and the only one that may hold the scopes of our own APIs.
INSERT INTO oauth_clients (id, kind, metadata) VALUES ('svc-cli', 'first-party', '{
  "client_name": "svc command line",
  "application_type": "native",
  "token_endpoint_auth_method": "none",
  "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "urn:svc:params:oauth:grant-type:fido2"],
  "response_types": [],
  "redirect_uris": []
}');

-- A session of svc-cli is its own, beside that of any browser. A synthetic one stands for nobody's key: it is there in
-- certification test mode alone, and no token of it opens anything of ours.
ALTER TABLE sessions
  ADD COLUMN client_id text REFERENCES oauth_clients (id) ON DELETE CASCADE,
  DROP CONSTRAINT sessions_level_check,
  DROP CONSTRAINT sessions_check1,
  ADD CONSTRAINT sessions_level_check CHECK (level IN ('bootstrap', 'verified', 'synthetic')),
  ADD CONSTRAINT sessions_verified_check CHECK (
    level = 'bootstrap'
    OR (user_id IS NOT NULL AND auth_time IS NOT NULL AND (level = 'synthetic') = (authenticator_id IS NULL)));
CREATE INDEX sessions_authenticator ON sessions (authenticator_id) WHERE authenticator_id IS NOT NULL;

CREATE TABLE oauth_grants (
  id         bytea       PRIMARY KEY, -- SHA-256 of the library's id
  client_id  text        NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  session_id uuid        NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  payload    jsonb       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX oauth_grants_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_user ON oauth_grants (user_id);
CREATE INDEX oauth_grants_session ON oauth_grants (session_id, client_id);
CREATE INDEX oauth_grants_expiry ON oauth_grants (expires_at);

-- Codes, tokens, pushed requests, device codes, interactions and the provider's own browser sessions, by the library's name
-- of the model. A consumed row stays until it expires: that it comes again is how a theft shows.
CREATE TABLE oauth_artifacts (
  model       text        NOT NULL,
  id          bytea       NOT NULL, -- SHA-256 of the library's id, which for codes and tokens is the secret
  payload     jsonb       NOT NULL,
  -- In this order the rows behind it are locked when one is written: that in which a de-provisioning takes them.
  user_id     uuid        REFERENCES users (id) ON DELETE CASCADE,
  client_id   text        REFERENCES oauth_clients (id) ON DELETE CASCADE,
  grant_id    bytea       REFERENCES oauth_grants (id) ON DELETE CASCADE,
  user_code   text,                 -- of a DeviceCode
  polled_at   timestamptz,          -- of a DeviceCode: when its client asked last, and how long it has to wait
  poll_interval integer,            -- between two requests, in seconds
  consumed_at timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (model, id)
);
CREATE INDEX oauth_artifacts_grant ON oauth_artifacts (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX oauth_artifacts_client ON oauth_artifacts (client_id) WHERE client_id IS NOT NULL;
CREATE INDEX oauth_artifacts_user ON oauth_artifacts (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX oauth_artifacts_user_code ON oauth_artifacts (user_code) WHERE user_code IS NOT NULL;
CREATE INDEX oauth_artifacts_expiry ON oauth_artifacts (expires_at);

-- Ids that may come once (RFC 7523 §3, RFC 9449 §11.1): a row is kept until what it names could not be accepted anyway.
CREATE TABLE oauth_replays (
  key        bytea       PRIMARY KEY, -- SHA-256 of the JSON of issuer and jti
  expires_at timestamptz NOT NULL
);
CREATE INDEX oauth_replays_expiry ON oauth_replays (expires_at);

-- How often a person typed a user code that is none (RFC 8628 §5.1), in a row.
CREATE TABLE oauth_user_code_tries (
  user_id     uuid        PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  wrong_tries integer     NOT NULL,
  last_at     timestamptz NOT NULL
);

-- Who may be issued something, by their sessions: active, their e-mail in a domain of their organization's, or of nobody's for
-- who has none, and logged in beyond a sign-in upstream.
CREATE VIEW oauth_holders AS
SELECT s.id AS session_id, s.token_hash, s.client_id AS session_client, s.level, s.authenticator_id, s.auth_time, s.amr,
       s.acr, s.expires_at, k.aaguid, u.id AS user_id, u.org_id, u.email, u.name, u.is_org_admin
FROM sessions s
JOIN users u ON u.id = s.user_id
LEFT JOIN authenticators k ON k.id = s.authenticator_id
WHERE s.level <> 'bootstrap' AND s.expires_at > now() AND u.active
  AND (SELECT d.org_id FROM organization_domains d
       WHERE d.domain = split_part(u.email, '@', -1) AND d.verified_at IS NOT NULL
      ) IS NOT DISTINCT FROM u.org_id;
