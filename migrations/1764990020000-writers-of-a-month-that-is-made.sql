-- Makes the partition of a class for the month of a time, as before. If the month may have rows in the default partition, the function now
-- locks the parent, too. A statement that waited for the default partition alone had found the partitions before: PostgreSQL refused its row
-- for the new month, and it read the moved rows in neither partition. The former table, whose rows are still copied, has no such statements,
-- and a batch of that copy must keep no writer waiting.
CREATE OR REPLACE FUNCTION make_audit_month(of_class text, at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  parent     text := 'audit_events_' || of_class;
  begins     timestamptz := date_trunc('month', at, 'UTC');
  ends       timestamptz := (begins AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
  month      text := parent || to_char(begins AT TIME ZONE 'UTC', '_YYYY_MM');
  month_rows text;
  has_rows   boolean;
BEGIN
  IF NOT has_table_privilege(session_user, 'audit_events', 'INSERT') THEN
    RAISE insufficient_privilege USING MESSAGE = 'only a role that writes the audit log makes its months';
  END IF;
  IF of_class NOT IN ('auth', 'oauth') OR at < '2000-01-01' OR at >= '2200-01-01' OR to_regclass(month) IS NOT NULL THEN
    RETURN false;
  END IF;
  month_rows := format('FROM %I WHERE created_at >= %L AND created_at < %L', parent || '_other', begins, ends);
  IF EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass('audit_events') AND c.relkind = 'p') THEN
    EXECUTE format('SELECT EXISTS (SELECT %s)', month_rows) INTO has_rows;
    IF has_rows OR begins <= clock_timestamp() THEN
      EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    END IF;
  END IF;
  EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_other');
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS, PRIMARY KEY (id))', month, parent);
  EXECUTE format('WITH moved AS (DELETE %s RETURNING *) INSERT INTO %I SELECT * FROM moved', month_rows, month);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, month, begins, ends);
  RETURN true;
END
$$;
