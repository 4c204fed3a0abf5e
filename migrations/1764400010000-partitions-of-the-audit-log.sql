-- The audit log in partitions: by class, and below by month (UTC), so that retention drops a month as a whole. Administrative events stay
-- for ever, so their class has no months. The next file copies the rows, and gives this table the name of the former one. It has the same
-- columns in the same order, so that the statements of an earlier version work on both. A class that has no partition is refused. Each
-- partition has its primary key by itself, because one of all partitions would need the class and the time.
CREATE TABLE audit_log (LIKE audit_events INCLUDING DEFAULTS) PARTITION BY LIST (class);
CREATE TABLE audit_events_auth PARTITION OF audit_log FOR VALUES IN ('auth') PARTITION BY RANGE (created_at);
CREATE TABLE audit_events_oauth PARTITION OF audit_log FOR VALUES IN ('oauth') PARTITION BY RANGE (created_at);
CREATE TABLE audit_events_admin PARTITION OF audit_log (PRIMARY KEY (id)) FOR VALUES IN ('admin');

-- Rows of a month that has no partition, so that no event is ever refused. They move when the partition of their month is made.
CREATE TABLE audit_events_auth_other PARTITION OF audit_events_auth (PRIMARY KEY (id)) DEFAULT;
CREATE TABLE audit_events_oauth_other PARTITION OF audit_events_oauth (PRIMARY KEY (id)) DEFAULT;

-- The order in which programs read the log, the order of time, and the searches of the console.
CREATE INDEX audit_log_place ON audit_log (org_id, epoch, xid, id);
CREATE INDEX audit_log_of_class ON audit_log (class, created_at);
CREATE INDEX audit_log_of_org ON audit_log (org_id, created_at, id);
CREATE INDEX audit_log_of_type ON audit_log (hashtextextended(type, uuid_hash_extended(org_id, 0)), created_at);
CREATE INDEX audit_log_of_subject ON audit_log (subject_id, (
    CASE WHEN type IN ('ssh_credential', 'aws_credential', 'github_credential', 'token_exchange', 'oauth_token_issued')
    AND (type <> 'oauth_token_issued' OR details ->> 'grant_type' IS DISTINCT FROM 'token_exchange') THEN 1 ELSE 0 END), created_at, id);
CREATE INDEX audit_log_of_subject_email ON audit_log (hashtextextended(subject_email, uuid_hash_extended(org_id, 0)), created_at);
CREATE INDEX audit_log_of_request ON audit_log (hashtextextended(request_id, uuid_hash_extended(org_id, 0)), created_at);
CREATE INDEX audit_log_of_ip ON audit_log (uuid_hash_extended(org_id, 0), ip, created_at);
CREATE INDEX audit_log_of_actor ON audit_log (actor_id, created_at, id) WHERE actor_id IS NOT NULL AND actor_id IS DISTINCT FROM subject_id;
CREATE INDEX audit_log_of_actor_email ON audit_log (org_id, actor_email, created_at, id)
  WHERE actor_email IS NOT NULL AND actor_email IS DISTINCT FROM subject_email;
CREATE INDEX audit_log_of_client ON audit_log (org_id, (details ->> 'client_id'), created_at, id) WHERE details ? 'client_id';
CREATE INDEX audit_log_of_application ON audit_log (org_id, (details ->> 'application_id'), created_at, id) WHERE details ? 'application_id';
CREATE INDEX audit_log_of_client_name ON audit_log (org_id, lower(client_name), created_at, id) WHERE client_name IS NOT NULL;
CREATE INDEX audit_log_of_model ON audit_log (org_id, (details ->> 'aaguid'), created_at, id) WHERE details ? 'aaguid';
-- Not every class has events of these kinds. In the class oauth, `key_id` is the identity in an SSH certificate, which is no security key.
CREATE INDEX audit_log_of_email ON audit_events_auth (org_id, (details ->> 'email'), created_at, id) WHERE details ? 'email';
CREATE INDEX audit_log_of_email_admin ON audit_events_admin (org_id, (details ->> 'email'), created_at, id) WHERE details ? 'email';
CREATE INDEX audit_log_of_key ON audit_events_auth (org_id, (details ->> 'key_id'), created_at, id)
  WHERE details ? 'key_id' AND type <> 'ssh_credential';
CREATE INDEX audit_log_of_key_admin ON audit_events_admin (org_id, (details ->> 'key_id'), created_at, id)
  WHERE details ? 'key_id' AND type <> 'ssh_credential';
CREATE INDEX audit_log_keys_of_subject ON audit_events_auth (subject_id, created_at, id)
  WHERE type IN ('enrollment', 'enrollment_refused', 'key_registered', 'key_removed', 'key_renamed');
CREATE INDEX audit_log_refused_newcomers ON audit_events_auth ((details ->> 'email'), created_at, id)
  WHERE type = 'enrollment_refused' AND subject_id IS NULL;

-- Makes the partition of a class for the month of a time, and moves its rows from the default partition. False if it is there already, and
-- for a class without months. Only the default partition is locked against readers and writers.
-- The role of the service need not own the table: the functions that make and drop partitions have the rights of the role that migrates.
CREATE FUNCTION make_audit_month(of_class text, at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  parent     text := 'audit_events_' || of_class;
  begins     timestamptz := date_trunc('month', at, 'UTC');
  ends       timestamptz := (begins AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
  month      text := parent || to_char(begins AT TIME ZONE 'UTC', '_YYYY_MM');
  month_rows text;
BEGIN
  IF NOT has_table_privilege(session_user, 'audit_events', 'INSERT') THEN
    RAISE insufficient_privilege USING MESSAGE = 'only a role that writes the audit log makes its months';
  END IF;
  IF of_class NOT IN ('auth', 'oauth') OR at < '2000-01-01' OR at >= '2200-01-01' OR to_regclass(month) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_other');
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS, PRIMARY KEY (id))', month, parent);
  month_rows := format('FROM %I WHERE created_at >= %L AND created_at < %L', parent || '_other', begins, ends);
  EXECUTE format('WITH moved AS (DELETE %s RETURNING *) INSERT INTO %I SELECT * FROM moved', month_rows, month);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, month, begins, ends);
  RETURN true;
END
$$;

-- The months that lack a partition: this month, the next one, and those of rows in the default partitions.
CREATE FUNCTION missing_audit_months() RETURNS TABLE (class text, month timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  WITH RECURSIVE ahead AS (
    SELECT date_trunc('month', clock_timestamp() + n * interval '1 month', 'UTC') AS month FROM generate_series(0, 1) n
  ), auth (month) AS (
    SELECT date_trunc('month', min(o.created_at), 'UTC') FROM audit_events_auth_other o
    WHERE o.created_at >= '2000-01-01' AND o.created_at < '2200-01-01'
    UNION ALL
    SELECT (SELECT date_trunc('month', min(o.created_at), 'UTC') FROM audit_events_auth_other o
            WHERE o.created_at >= (f.month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC' AND o.created_at < '2200-01-01')
    FROM auth f WHERE f.month IS NOT NULL
  ), oauth (month) AS (
    SELECT date_trunc('month', min(o.created_at), 'UTC') FROM audit_events_oauth_other o
    WHERE o.created_at >= '2000-01-01' AND o.created_at < '2200-01-01'
    UNION ALL
    SELECT (SELECT date_trunc('month', min(o.created_at), 'UTC') FROM audit_events_oauth_other o
            WHERE o.created_at >= (f.month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC' AND o.created_at < '2200-01-01')
    FROM oauth f WHERE f.month IS NOT NULL
  ), wanted AS (
    SELECT c.class, a.month FROM ahead a CROSS JOIN (VALUES ('auth'), ('oauth')) c (class)
    UNION SELECT 'auth', a.month FROM auth a
    UNION SELECT 'oauth', o.month FROM oauth o
  )
  SELECT w.class, w.month FROM wanted w
  WHERE w.month IS NOT NULL AND to_regclass('audit_events_' || w.class || to_char(w.month AT TIME ZONE 'UTC', '_YYYY_MM')) IS NULL
  ORDER BY w.month, w.class
$$;

-- The partitions of months with the first time that is later than each of their rows.
CREATE FUNCTION audit_months() RETURNS TABLE (class text, month text, relation text, ends timestamptz) LANGUAGE sql STABLE AS $$
  SELECT m.class, m.month, m.relation,
         CASE WHEN m.month IS NOT NULL THEN ((m.month || '-01')::timestamp + interval '1 month') AT TIME ZONE 'UTC' END
  FROM (
    SELECT p.class, c.relname::text AS relation,
           replace(substring(c.relname FROM '^audit_events_' || p.class || '_(\d{4}_\d{2})$'), '_', '-') AS month
    FROM (VALUES ('auth'), ('oauth')) p (class)
    JOIN pg_inherits i ON i.inhparent = to_regclass('audit_events_' || p.class)
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE NOT i.inhdetachpending
  ) m
  WHERE m.month IS NOT NULL
$$;

-- Drops the partition of a month whose rows are all older than a number of days. The lock keeps the writers of this class waiting, so the
-- caller sets a short lock_timeout. A class without months, such as that of administrative events, has nothing to drop.
CREATE FUNCTION drop_audit_month(of_class text, of_month text, days integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  found text;
BEGIN
  IF NOT has_table_privilege(session_user, 'audit_events', 'DELETE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'only a role that deletes from the audit log drops its months';
  END IF;
  SELECT m.relation INTO found FROM audit_months() m
  WHERE m.class = of_class AND m.month = of_month AND m.ends < now() - make_interval(days => days);
  IF found IS NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('DROP TABLE %I', found);
  RETURN true;
END
$$;

-- The trigger of the names is there from the beginning, so that the exchange needs no lock of each partition. Until then its function leaves
-- the rows as they are: they are copies, whose names are those of their time.
CREATE FUNCTION name_audit_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RETURN NEW;
END
$$;
CREATE TRIGGER audit_events_names BEFORE INSERT ON audit_log FOR EACH ROW
  WHEN ((NEW.subject_id IS NOT NULL AND NEW.subject_email IS NULL)
     OR (NEW.actor_id IS NOT NULL AND NEW.actor_email IS NULL)
     OR (NEW.details ? 'client_id' AND NEW.client_name IS NULL))
  EXECUTE FUNCTION name_audit_row();

-- Writes into the partitions what happens to the former table while its rows are copied, also for a role that has no right to them yet.
CREATE FUNCTION mirror_audit_rows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM audit_log t USING removed r WHERE t.id = r.id AND t.class = r.class AND t.created_at = r.created_at;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO audit_log SELECT * FROM added;
  END IF;
  RETURN NULL;
END
$$;

-- Gives the roles that may use the former table the same rights to the new one.
CREATE FUNCTION copy_audit_grants() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  given record;
BEGIN
  FOR given IN
    SELECT a.privilege_type AS what, a.is_grantable AS with_grant,
           CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
    FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
    WHERE c.oid = to_regclass('audit_events') AND a.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT %s ON audit_log TO %s %s', given.what, given.who, CASE WHEN given.with_grant THEN 'WITH GRANT OPTION' ELSE '' END);
  END LOOP;
END
$$;

-- The last id up to which the rows were copied.
CREATE TABLE audit_log_copied (key uuid);
INSERT INTO audit_log_copied (key) VALUES (NULL);

-- The events of an organization after a place that the feed shows, in its order: every event before them is visible. Without sorting,
-- because PostgreSQL underestimates the events after a place, and would read and sort them all.
CREATE FUNCTION audit_feed(of_org uuid, after_epoch bigint, after_xid xid8, after_id uuid, most integer) RETURNS SETOF audit_log
LANGUAGE sql STABLE SET enable_sort = off AS $$
  SELECT e.* FROM audit_events e
  WHERE e.org_id = of_org AND (e.epoch, e.xid, e.id) > (after_epoch, after_xid, after_id)
    AND e.epoch <= (SELECT d.epoch FROM database_identity d)
    AND (e.epoch < (SELECT d.xids_since FROM database_identity d) OR e.xid < (SELECT pg_snapshot_xmin(pg_current_snapshot())))
  ORDER BY e.epoch, e.xid, e.id LIMIT most
$$;

-- The same of the events without an organization.
CREATE FUNCTION audit_feed_of_deployment(after_epoch bigint, after_xid xid8, after_id uuid, most integer) RETURNS SETOF audit_log
LANGUAGE sql STABLE SET enable_sort = off AS $$
  SELECT e.* FROM audit_events e
  WHERE e.org_id IS NULL AND (e.epoch, e.xid, e.id) > (after_epoch, after_xid, after_id)
    AND e.epoch <= (SELECT d.epoch FROM database_identity d)
    AND (e.epoch < (SELECT d.xids_since FROM database_identity d) OR e.xid < (SELECT pg_snapshot_xmin(pg_current_snapshot())))
  ORDER BY e.epoch, e.xid, e.id LIMIT most
$$;

-- Every event of an organization (NULL: without one) after a place, up to another place, also one that was forged and that the feed hides.
CREATE FUNCTION audit_rows_between(
  of_org uuid, after_epoch bigint, after_xid xid8, after_id uuid, last_epoch bigint, last_xid xid8, last_id uuid, most integer)
RETURNS SETOF audit_log LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
  IF of_org IS NULL THEN
    RETURN QUERY SELECT e.* FROM audit_events e
      WHERE e.org_id IS NULL AND (e.epoch, e.xid, e.id) > (after_epoch, after_xid, after_id)
        AND (e.epoch, e.xid, e.id) <= (last_epoch, last_xid, last_id)
      ORDER BY e.epoch, e.xid, e.id LIMIT most;
  ELSE
    RETURN QUERY SELECT e.* FROM audit_events e
      WHERE e.org_id = of_org AND (e.epoch, e.xid, e.id) > (after_epoch, after_xid, after_id)
        AND (e.epoch, e.xid, e.id) <= (last_epoch, last_xid, last_id)
      ORDER BY e.epoch, e.xid, e.id LIMIT most;
  END IF;
END
$$;

-- These read the first or the last entry of an index of each partition, for the same reason.
ALTER FUNCTION audited_organizations() SET enable_sort = off;
ALTER FUNCTION last_audit_place(bigint) SET enable_sort = off;
ALTER FUNCTION next_audit_epoch(bigint) SET enable_sort = off;
