-- The places that refused clients were told, beside the bucket that they are of: who booked each (the hash of a credential), and
-- when it is. There are as many as the tier's burst at most, and none but for a short while.
ALTER TABLE rate_limits
  ADD COLUMN holders text[]        NOT NULL DEFAULT '{}',
  ADD COLUMN slots   timestamptz[] NOT NULL DEFAULT '{}';
