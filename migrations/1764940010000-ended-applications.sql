-- The end of a large application, whose grants one statement could not delete in time. No grant and no token from before `ended_before`
-- counts any more, and a background worker deletes them in batches. A client of kind `removed` stays until its last row is gone; its
-- `ended_before` is infinity. A version before this one finds such a client without metadata and without secrets.
ALTER TABLE oauth_clients
  ADD COLUMN ended_before timestamptz,
  DROP CONSTRAINT oauth_clients_kind_check,
  ADD CONSTRAINT oauth_clients_kind_check
    CHECK (kind IN ('first-party', 'application', 'dynamic', 'kubernetes', 'removed')) NOT VALID;

-- The clients with an `ended_before`. The table is nearly always empty, so that a look-up of a grant costs nothing more.
CREATE TABLE oauth_ending_clients (
  client_id text PRIMARY KEY REFERENCES oauth_clients (id) ON DELETE CASCADE
);

-- True if a row that was made at a time for a client (and for an application, such as a cluster) has ended with one of them, or with
-- a grant above it. `above` is the grant of a token, or the parent of a grant.
CREATE FUNCTION has_ended(client text, application text, made timestamptz, above bytea) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    WITH RECURSIVE chain AS (
      SELECT client AS client_id, made AS created_at, above AS parent_id
      UNION ALL
      SELECT g.client_id, g.created_at, g.parent_id FROM chain n JOIN oauth_grants g ON g.id = n.parent_id
    )
    SELECT FROM chain n JOIN oauth_clients c ON c.id = n.client_id WHERE n.created_at <= c.ended_before
    UNION ALL
    SELECT FROM oauth_clients c WHERE c.id = application AND made <= c.ended_before);
END $$;

-- The grants of a removed application end without a message to each user, as they do where one statement deletes it.
CREATE OR REPLACE FUNCTION queue_deleted_targets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule)
  SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t), 'target'
  FROM gone t
  WHERE t.kind = 'host_group' OR EXISTS (SELECT FROM oauth_clients c WHERE c.id = t.client_id AND c.kind <> 'removed')
     OR EXISTS (SELECT FROM github_installations n WHERE n.id = t.installation_id);
  RETURN NULL;
END $$;
