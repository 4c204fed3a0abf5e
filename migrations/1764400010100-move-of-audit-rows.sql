-- background
-- move of audit_events into audit_log by id, noted in audit_log_copied

-- mirror
-- From here on, each transaction writes its rows into both tables.
SELECT pg_advisory_xact_lock(7301004);
SELECT make_audit_month(m.class, m.month) FROM missing_audit_months() m;
CREATE OR REPLACE TRIGGER audit_events_mirror_added AFTER INSERT ON audit_events
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mirror_audit_rows();
CREATE OR REPLACE TRIGGER audit_events_mirror_removed AFTER DELETE ON audit_events
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION mirror_audit_rows();
CREATE OR REPLACE TRIGGER audit_events_mirror_changed AFTER UPDATE ON audit_events
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mirror_audit_rows();

-- batch
-- The lock of the clean-up: rows that it deletes meanwhile would be copied.
SELECT pg_advisory_xact_lock(7301004), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true);
SELECT make_audit_month(m.class, m.month) FROM (
  SELECT DISTINCT e.class, date_trunc('month', e.created_at, 'UTC') AS month FROM audit_events e
  WHERE e.id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid) m;
INSERT INTO audit_log SELECT * FROM audit_events e
WHERE e.id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid
  AND NOT EXISTS (SELECT FROM audit_log t WHERE t.id = e.id AND t.class = e.class AND t.created_at = e.created_at);

-- compare
SELECT (SELECT row(count(*), sum(hashtextextended(e::text, 0))) FROM audit_events e
        WHERE e.id > current_setting('migration.after')::uuid AND e.id <= current_setting('migration.last')::uuid)
     IS NOT DISTINCT FROM (SELECT row(count(*), sum(hashtextextended(e::text, 0))) FROM audit_log e
        WHERE e.id > current_setting('migration.after')::uuid AND e.id <= current_setting('migration.last')::uuid) AS same;

-- exchange
-- It locks the former table, for which nobody waits long, and no partition: autovacuum may work on one for minutes.
LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE;
SELECT copy_audit_grants();
DROP TRIGGER audit_events_mirror_added ON audit_events;
DROP TRIGGER audit_events_mirror_removed ON audit_events;
DROP TRIGGER audit_events_mirror_changed ON audit_events;
ALTER TABLE audit_events RENAME TO audit_events_before;
ALTER TABLE audit_log RENAME TO audit_events;
CREATE OR REPLACE FUNCTION name_audit_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.subject_id IS NOT NULL THEN
    NEW.subject_email := coalesce(NEW.subject_email, (SELECT u.email FROM users u WHERE u.id = NEW.subject_id),
                                  NEW.details ->> 'email');
  END IF;
  IF NEW.actor_id = NEW.subject_id THEN
    NEW.actor_email := coalesce(NEW.actor_email, NEW.subject_email);
  ELSIF NEW.actor_id IS NOT NULL THEN
    NEW.actor_email := coalesce(NEW.actor_email, (SELECT u.email FROM users u WHERE u.id = NEW.actor_id));
  END IF;
  IF NEW.details ? 'client_id' THEN
    NEW.client_name := coalesce(NEW.client_name,
                                (SELECT c.metadata ->> 'client_name' FROM oauth_clients c WHERE c.id = NEW.details ->> 'client_id'),
                                NEW.details ->> 'name');
  END IF;
  RETURN NEW;
END
$$;

-- end
DROP TABLE IF EXISTS audit_events_before;
DROP TABLE IF EXISTS audit_log_copied;
DROP FUNCTION IF EXISTS mirror_audit_rows, copy_audit_grants, name_audit_event;
