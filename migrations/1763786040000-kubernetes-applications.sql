-- An application of kind kubernetes is a cluster of an organization: the audience of the tokens that svc-cli gets for its users
-- by token exchange (RFC 8693). It belongs to the organization and to no user, authenticates nowhere and holds no grant.
ALTER TABLE oauth_clients
  ADD COLUMN resource text, -- RFC 8707 §2: the audience that the API server of the cluster is configured with
  DROP CONSTRAINT oauth_clients_kind_check,
  ADD CONSTRAINT oauth_clients_kind_check CHECK (kind IN ('first-party', 'application', 'dynamic', 'kubernetes')),
  ADD CONSTRAINT oauth_clients_kubernetes_check CHECK (
    CASE WHEN kind = 'kubernetes' THEN resource IS NOT NULL AND org_id IS NOT NULL ELSE resource IS NULL END);
CREATE UNIQUE INDEX oauth_clients_resource ON oauth_clients (org_id, resource) WHERE kind = 'kubernetes';

-- The applications of an organization in the order in which they are listed, those of kind kubernetes included.
CREATE INDEX oauth_clients_org_applications ON oauth_clients (org_id, id) WHERE kind IN ('application', 'kubernetes');
DROP INDEX oauth_clients_org_list;

-- A token for a cluster ends with the application.
ALTER TABLE oauth_artifacts
  ADD COLUMN application_id text REFERENCES oauth_clients (id) ON DELETE CASCADE;
CREATE INDEX oauth_artifacts_application ON oauth_artifacts (application_id) WHERE application_id IS NOT NULL;

UPDATE oauth_clients
SET metadata = jsonb_set(metadata, '{grant_types}',
      metadata -> 'grant_types' || '["urn:ietf:params:oauth:grant-type:token-exchange"]')
WHERE id = 'svc-cli' AND NOT metadata -> 'grant_types' ? 'urn:ietf:params:oauth:grant-type:token-exchange';
