-- An event carries the e-mail addresses of its users and the name of its client as they were when it was written: users and clients
-- go, and their events stay. Events from before have none.
ALTER TABLE audit_events ADD COLUMN actor_email text, ADD COLUMN subject_email text, ADD COLUMN client_name text;

-- Events are written by many statements: this is the one place that names them all. Where the user or the client was removed by
-- the transaction of the event, the details name them.
CREATE FUNCTION name_audit_event() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER audit_events_names BEFORE INSERT ON audit_events FOR EACH ROW
  WHEN (NEW.actor_id IS NOT NULL OR NEW.subject_id IS NOT NULL OR NEW.details ? 'client_id')
  EXECUTE FUNCTION name_audit_event();
