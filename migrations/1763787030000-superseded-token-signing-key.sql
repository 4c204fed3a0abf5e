-- The moment when a configured key took the place of the key kept in the database. Its public part stays published for a day,
-- which is longer than any token that it has signed.
ALTER TABLE token_signing_keys ADD COLUMN superseded_at timestamptz;
