-- Where a session was opened from, for the list of a user's own sessions. Sessions from before have neither.
ALTER TABLE sessions ADD COLUMN ip inet, ADD COLUMN user_agent text;
