-- The index of requests begins with the day. Ids of requests are random, so that each row would write another page of an index without it,
-- and PostgreSQL writes a page whole into the WAL when it changes first after a checkpoint: 2,300 of 3,800 bytes a row. Now the rows of one
-- time write the pages of one day. A search for a request skips from day to day (skip scan of PostgreSQL 18). The table has its former name
-- until the rows of an earlier version have moved.
DO $$
DECLARE
  log text := CASE WHEN to_regclass('audit_log') IS NULL THEN 'audit_events' ELSE 'audit_log' END;
BEGIN
  EXECUTE format('CREATE INDEX audit_log_of_request_day ON %I (((created_at AT TIME ZONE ''UTC'')::date), hashtextextended(request_id, uuid_hash_extended(org_id, 0)))', log);
  DROP INDEX audit_log_of_request;
END
$$;
