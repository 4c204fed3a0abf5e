-- Names the streams that have new events, so that only their polls read the queue. Before, each event made the polls of all streams of all
-- organizations read it.
CREATE OR REPLACE FUNCTION announce_signals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('signal_events', m.stream_id::text) FROM (SELECT DISTINCT stream_id FROM made) m;
  RETURN NULL;
END $$;
