-- What became of a person's keys is shown to them: found without reading the rest of what they did.
CREATE INDEX audit_events_keys_of_subject ON audit_events (subject_id, created_at DESC, id DESC)
WHERE type IN ('enrollment', 'enrollment_refused');
-- Refused before there was an account: by the address that asked.
CREATE INDEX audit_events_refused_newcomers ON audit_events ((details ->> 'email'), created_at DESC, id DESC)
WHERE type = 'enrollment_refused' AND subject_id IS NULL;
