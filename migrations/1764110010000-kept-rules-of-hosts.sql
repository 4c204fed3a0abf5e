-- The rule of a group of hosts that was deleted or renamed: the next group of the name begins with it, because hosts that joined
-- with the name still accept its principals. No foreign keys.
CREATE TABLE access_kept_host_rules (
  org_id               uuid NOT NULL,
  name                 text NOT NULL,
  access               text NOT NULL,
  touch_within_seconds int,
  models               text,
  user_verification    text,
  PRIMARY KEY (org_id, name)
);

CREATE FUNCTION keep_rule_of_hosts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_kept_host_rules
  SELECT OLD.org_id, OLD.name, OLD.access, OLD.touch_within_seconds, OLD.models, OLD.user_verification
  FROM organizations WHERE id = OLD.org_id
  ON CONFLICT (org_id, name) DO UPDATE SET access = excluded.access, touch_within_seconds = excluded.touch_within_seconds,
    models = excluded.models, user_verification = excluded.user_verification;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_rule_of_hosts AFTER DELETE ON access_targets FOR EACH ROW
  WHEN (OLD.kind = 'host_group' AND (OLD.access <> 'everyone' OR num_nonnulls(OLD.touch_within_seconds, OLD.models, OLD.user_verification) > 0))
  EXECUTE FUNCTION keep_rule_of_hosts();
CREATE TRIGGER keep_rule_of_renamed_hosts AFTER UPDATE OF name ON access_targets FOR EACH ROW
  WHEN (OLD.kind = 'host_group' AND OLD.name <> NEW.name
    AND (OLD.access <> 'everyone' OR num_nonnulls(OLD.touch_within_seconds, OLD.models, OLD.user_verification) > 0))
  EXECUTE FUNCTION keep_rule_of_hosts();

-- Of a kept rule and the rule of the new group, the narrower part holds. A kept rule for assigned people admits no one until an admin
-- assigns people, because the assignments are gone.
CREATE FUNCTION take_rule_of_hosts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  b access_kept_host_rules;
BEGIN
  DELETE FROM access_kept_host_rules WHERE org_id = NEW.org_id AND name = NEW.name RETURNING * INTO b;
  IF FOUND THEN
    NEW.access := CASE WHEN b.access = 'assigned' THEN 'assigned' ELSE NEW.access END;
    NEW.touch_within_seconds := least(NEW.touch_within_seconds, b.touch_within_seconds);
    NEW.models := coalesce(NEW.models, b.models);
    NEW.user_verification := coalesce(NEW.user_verification, b.user_verification);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER take_rule_of_hosts BEFORE INSERT ON access_targets FOR EACH ROW
  WHEN (NEW.kind = 'host_group') EXECUTE FUNCTION take_rule_of_hosts();
CREATE TRIGGER take_rule_of_renamed_hosts BEFORE UPDATE OF name ON access_targets FOR EACH ROW
  WHEN (NEW.kind = 'host_group' AND OLD.name <> NEW.name) EXECUTE FUNCTION take_rule_of_hosts();
