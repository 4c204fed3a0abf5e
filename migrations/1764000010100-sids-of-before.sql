-- batches of sessions by id where sid IS NULL
-- The sessions that began before, with the clients that have a grant in them.
UPDATE sessions SET sid = gen_random_uuid()
 WHERE id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid AND sid IS NULL;
INSERT INTO client_sign_ins (sid, client_id, user_id, session_key)
SELECT DISTINCT s.sid, g.client_id, g.user_id, s.authenticator_id
  FROM sessions s JOIN oauth_grants g ON g.session_id = s.id
 WHERE s.id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid
ON CONFLICT (sid, client_id) DO NOTHING;
