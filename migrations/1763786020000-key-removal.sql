-- The removal of a key revokes the certificates that were issued in its sessions. A certificate outlives its session (a logout, a step-up),
-- so each row names the key. NULL: issued by an earlier version in a session that is gone; such a certificate ends with any key of its user.
ALTER TABLE ssh_certificates ADD COLUMN authenticator_id uuid;
UPDATE ssh_certificates c SET authenticator_id = s.authenticator_id
FROM sessions s WHERE s.id = c.session_id AND c.valid_before > now();
-- The sessions of a key, for its removal and for the foreign key.
CREATE INDEX sessions_key ON sessions (authenticator_id) WHERE authenticator_id IS NOT NULL;
-- The list of what happened to a user's keys also shows added, renamed and removed keys.
DROP INDEX audit_events_keys_of_subject;
CREATE INDEX audit_events_keys_of_subject ON audit_events (subject_id, created_at DESC, id DESC)
WHERE type IN ('enrollment', 'enrollment_refused', 'key_registered', 'key_removed', 'key_renamed');
