-- The rule of a Kubernetes cluster that was removed, also because its domain was lost: the next cluster of the resource begins with
-- it, because the API server still accepts the tokens for the resource. No foreign keys.
CREATE TABLE access_kept_clusters (
  org_id               uuid NOT NULL,
  resource             text NOT NULL,
  access               text NOT NULL,
  touch_within_seconds int,
  models               text,
  user_verification    text,
  PRIMARY KEY (org_id, resource)
);

-- The lock waits for a change of the rule that is under way. The INSERT is a statement of its own, so that it sees the change.
CREATE FUNCTION keep_rule_of_cluster() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM access_targets WHERE client_id = OLD.id FOR UPDATE;
  INSERT INTO access_kept_clusters
  SELECT t.org_id, OLD.resource, t.access, t.touch_within_seconds, t.models, t.user_verification
  FROM access_targets t JOIN organizations o ON o.id = t.org_id
  WHERE t.client_id = OLD.id AND t.org_id = OLD.org_id
    AND (t.access <> 'everyone' OR num_nonnulls(t.touch_within_seconds, t.models, t.user_verification) > 0)
  ON CONFLICT (org_id, resource) DO UPDATE SET access = excluded.access, touch_within_seconds = excluded.touch_within_seconds,
    models = excluded.models, user_verification = excluded.user_verification;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER keep_rule_of_deleted BEFORE DELETE ON oauth_clients FOR EACH ROW
  WHEN (OLD.kind = 'kubernetes') EXECUTE FUNCTION keep_rule_of_cluster();
CREATE TRIGGER keep_rule_of_removed BEFORE UPDATE OF kind ON oauth_clients FOR EACH ROW
  WHEN (OLD.kind = 'kubernetes' AND NEW.kind <> 'kubernetes') EXECUTE FUNCTION keep_rule_of_cluster();

-- A kept rule for assigned people admits no one until an admin assigns people, because the assignments are gone.
CREATE FUNCTION take_rule_of_cluster() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  b access_kept_clusters;
BEGIN
  DELETE FROM access_kept_clusters k USING oauth_clients c
  WHERE c.id = NEW.client_id AND c.kind = 'kubernetes' AND k.org_id = NEW.org_id AND k.resource = c.resource
  RETURNING k.* INTO b;
  IF FOUND THEN
    NEW.access := b.access;
    NEW.touch_within_seconds := b.touch_within_seconds;
    NEW.models := b.models;
    NEW.user_verification := b.user_verification;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER take_rule_of_cluster BEFORE INSERT ON access_targets FOR EACH ROW
  WHEN (NEW.client_id IS NOT NULL) EXECUTE FUNCTION take_rule_of_cluster();
