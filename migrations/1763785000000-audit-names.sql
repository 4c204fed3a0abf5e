-- A statement that knows the names of an audit event writes them itself. The trigger runs for the events that miss one: it reads the
-- user and the client again for each row.
CREATE OR REPLACE TRIGGER audit_events_names BEFORE INSERT ON audit_events FOR EACH ROW
  WHEN ((NEW.subject_id IS NOT NULL AND NEW.subject_email IS NULL)
     OR (NEW.actor_id IS NOT NULL AND NEW.actor_email IS NULL)
     OR (NEW.details ? 'client_id' AND NEW.client_name IS NULL))
  EXECUTE FUNCTION name_audit_event();
