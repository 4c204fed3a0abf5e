-- True if a group of hosts admits a person, and lacks only a newer touch like an earlier one of the session. A device has no touches.
-- The answer with a certificate says so. It decides nothing.
CREATE OR REPLACE FUNCTION waits_for_touch(org uuid, person uuid, touches jsonb, host text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM access_targets t
    WHERE t.org_id = org AND t.kind = 'host_group' AND t.touch_within_seconds IS NOT NULL
      AND (host IS NULL OR matches_host(t.hosts, host))
      AND date_trunc('second', to_timestamp(fitting_touch(touches, t.models, t.user_verification) + t.touch_within_seconds)) <= now()
      AND (t.access = 'everyone' OR is_assigned(t.id, person)));
END $$;
