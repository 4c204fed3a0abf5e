-- The rate limits' buckets, shared by all replicas: one row per tier and client, and one timestamp in it.
-- Unlogged: a crash forgets them, and then everybody may start afresh. They are worth no write-ahead log.
CREATE UNLOGGED TABLE rate_limits (
  bucket   text        PRIMARY KEY, -- the tier, and the client's address or network
  tat      timestamptz NOT NULL,    -- GCRA's theoretical arrival time: a bucket is out of debt when it has passed
  admitted boolean     NOT NULL     -- whether the last request was
) WITH (fillfactor = 50); -- an update stays on its page, since no index has what it changes: so none on tat
