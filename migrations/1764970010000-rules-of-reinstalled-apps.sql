-- The rule of an installation is also kept for its account: GitHub gives an App that is installed again another id, and the new link
-- must not open what the rule closed.
ALTER TABLE access_kept_rules ADD COLUMN org_id uuid, ADD COLUMN account_id bigint;

-- The lock waits for a change of the rule that is under way. The INSERT is a statement of its own, so that it sees the change.
CREATE FUNCTION keep_rule_of_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM access_targets WHERE installation_id = OLD.id FOR UPDATE;
  INSERT INTO access_kept_rules (installation_id, access, touch_within_seconds, models, user_verification, org_id, account_id)
  SELECT OLD.id, t.access, t.touch_within_seconds, t.models, t.user_verification, OLD.org_id, OLD.account_id
  FROM access_targets t
  WHERE t.installation_id = OLD.id
    AND (t.access <> 'everyone' OR num_nonnulls(t.touch_within_seconds, t.models, t.user_verification) > 0)
  ON CONFLICT (installation_id) DO UPDATE SET org_id = excluded.org_id, account_id = excluded.account_id;
  RETURN OLD;
END $$;
CREATE TRIGGER keep_rule BEFORE DELETE ON github_installations FOR EACH ROW EXECUTE FUNCTION keep_rule_of_account();

-- A new link begins with the narrowest of the kept rules and of the rules of the account's other installations in the organization,
-- which stay linked if GitHub could not report that they are gone. The lock waits for changes of those rules that are under way.
CREATE OR REPLACE FUNCTION keep_target_of_installation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  b record;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM access_targets WHERE installation_id = NEW.id AND org_id <> NEW.org_id;
  END IF;
  PERFORM FROM github_installations n JOIN access_targets t ON t.installation_id = n.id
  WHERE n.org_id = NEW.org_id AND n.account_id = NEW.account_id AND n.id <> NEW.id
  ORDER BY t.id FOR SHARE OF t;
  WITH kept AS (
    DELETE FROM access_kept_rules
    WHERE installation_id = NEW.id OR (org_id = NEW.org_id AND account_id = NEW.account_id)
    RETURNING access, touch_within_seconds, models, user_verification
  )
  SELECT bool_or(r.access = 'assigned') AS is_assigned, min(r.touch_within_seconds) AS touch_within_seconds,
         max(r.models) AS models, max(r.user_verification) AS user_verification INTO b
  FROM (
    SELECT * FROM kept
    UNION ALL
    SELECT t.access, t.touch_within_seconds, t.models, t.user_verification
    FROM github_installations n JOIN access_targets t ON t.installation_id = n.id
    WHERE n.org_id = NEW.org_id AND n.account_id = NEW.account_id AND n.id <> NEW.id
  ) r;
  INSERT INTO access_targets (org_id, kind, installation_id, access, touch_within_seconds, models, user_verification)
  VALUES (NEW.org_id, 'github_installation', NEW.id, CASE WHEN b.is_assigned THEN 'assigned' ELSE 'everyone' END,
          b.touch_within_seconds, b.models, b.user_verification)
  ON CONFLICT (installation_id) DO NOTHING;
  RETURN NULL;
END $$;
