-- A code that is redeemed twice at once shortens the session that it opened to a few seconds, and the clean-up deletes the row much later.
-- So the GitHub tokens that were issued in the session are queued for the new end of it, as those of a session that always ended earlier.
CREATE FUNCTION queue_github_tokens_of_shortened_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE github_tokens SET next_attempt_at = NEW.expires_at, revoke_reason = 'session ended', revoked_by = 'session'
  WHERE id IN (SELECT t.id FROM github_tokens t
               WHERE t.session_id = NEW.id AND t.attempts = 0 AND t.expires_at > NEW.expires_at
                 AND (t.next_attempt_at IS NULL OR t.next_attempt_at > NEW.expires_at)
               ORDER BY t.id FOR UPDATE);
  RETURN NULL;
END $$;
CREATE TRIGGER queue_github_tokens_of_shortened AFTER UPDATE OF expires_at ON sessions FOR EACH ROW
  WHEN (NEW.expires_at < OLD.expires_at) EXECUTE FUNCTION queue_github_tokens_of_shortened_session();
