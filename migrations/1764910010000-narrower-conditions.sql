-- Conditions of a target that become looser end nothing: a shorter age of the touch, or a condition that was not there, does. Before, each
-- change of the conditions ended the sign-ins whose touch did not meet the new ones, also a change from one minute to one hour.
CREATE OR REPLACE FUNCTION queue_changed_targets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM groups WHERE id IN (
    SELECT x.group_id FROM changed t JOIN before_change b ON b.id = t.id JOIN access_assignments x ON x.target_id = t.id
    WHERE t.access = 'assigned' AND b.access = 'everyone')
  ORDER BY id FOR SHARE;
  INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule)
  SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t), CASE WHEN n.is_narrower THEN 'condition' ELSE 'rule' END
  FROM changed t JOIN before_change b ON b.id = t.id
  CROSS JOIN LATERAL (
    SELECT coalesce(t.touch_within_seconds < coalesce(b.touch_within_seconds, t.touch_within_seconds + 1), false)
           OR (t.models IS NOT NULL AND t.models IS DISTINCT FROM b.models)
           OR (t.user_verification IS NOT NULL AND t.user_verification IS DISTINCT FROM b.user_verification) AS is_narrower) n
  WHERE (t.access = 'assigned' AND b.access = 'everyone') OR n.is_narrower
     OR (t.kind = 'host_group' AND (t.name, t.logins) IS DISTINCT FROM (b.name, b.logins));
  RETURN NULL;
END $$;
