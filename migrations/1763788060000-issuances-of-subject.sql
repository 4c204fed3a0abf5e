-- The credentials that were issued in the name of a user, as the page of the account lists them: it reads no other event, however long the
-- history of the user is. The conditions are those of the statement, word for word.
CREATE INDEX audit_events_issued_to_subject ON audit_events (subject_id, created_at DESC, id DESC)
  WHERE type IN ('ssh_credential', 'aws_credential', 'github_credential', 'token_exchange', 'oauth_token_issued')
    AND (type <> 'oauth_token_issued' OR details ->> 'grant_type' IS DISTINCT FROM 'token_exchange');
