-- The look for an event of the same transaction reads the index of waiting events, which is by user: without the condition on dead
-- letters it read every event of each stream.
CREATE OR REPLACE FUNCTION queue_signal(of_user uuid, of_org uuid, of_email text, of_type text, of_body jsonb,
                             of_sid uuid DEFAULT NULL, of_key uuid DEFAULT NULL, of_client text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  -- The cause that the transaction noted: who ended the access, and why.
  cause jsonb := CASE WHEN of_type IN ('session-revoked', 'account-disabled', 'account-purged') OR of_body ->> 'change_type' = 'revoke'
                      THEN nullif(current_setting('svc.signal_cause', true), '')::jsonb END;
BEGIN
  IF NOT EXISTS (SELECT FROM signal_streams WHERE org_id = of_org) THEN RETURN; END IF;
  INSERT INTO signal_events (stream_id, subject_id, subject_email, type, body)
  SELECT s.id, of_user, CASE WHEN r.subject_format = 'email' THEN of_email END, of_type, of_body || coalesce(cause, '{}')
  FROM signal_streams s JOIN signal_receivers r ON r.client_id = s.client_id
  WHERE s.org_id = of_org AND s.status <> 'disabled' AND of_type = ANY (s.events)
    AND (of_client IS NULL OR s.client_id = of_client)
    AND EXISTS (
      SELECT FROM client_sign_ins i
      WHERE i.user_id = of_user AND i.client_id = s.client_id AND i.last_at > now() - interval '400 days'
        AND (of_sid IS NULL OR i.sid = of_sid) AND (of_key IS NULL OR i.session_key = of_key))
    AND NOT EXISTS (SELECT FROM signal_removed_subjects x WHERE x.stream_id = s.id AND x.user_id = of_user)
    AND (of_type <> 'session-revoked' OR NOT EXISTS (
      SELECT FROM signal_events e
      WHERE e.stream_id = s.id AND e.subject_id = of_user AND e.dead_at IS NULL AND e.type = of_type AND e.made_in = pg_current_xact_id()))
  ORDER BY s.id;
END $$;
