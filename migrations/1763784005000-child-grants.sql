-- A token exchange makes a grant under the one of the subject token: it ends with that grant, and not after it. Grants that are
-- there already keep no parent, since nothing says which token they were exchanged for; they end with their session.
ALTER TABLE oauth_grants ADD COLUMN parent_id bytea REFERENCES oauth_grants (id) ON DELETE CASCADE;
CREATE INDEX oauth_grants_parent ON oauth_grants (parent_id) WHERE parent_id IS NOT NULL;
