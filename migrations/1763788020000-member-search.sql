-- What the lists of members filter and sort by, beside the members: the number of their keys, and the day of the last use of one.
ALTER TABLE users
  ADD COLUMN key_count   integer NOT NULL DEFAULT 0,
  ADD COLUMN key_used_on date    NOT NULL DEFAULT '-infinity'; -- UTC; -infinity: no key was used

-- The organization of a user never changes.
ALTER TABLE authenticators ADD COLUMN org_id uuid;
UPDATE authenticators k SET org_id = u.org_id FROM users u WHERE u.id = k.user_id AND u.org_id IS NOT NULL;

UPDATE users u SET key_count = n.keys, key_used_on = n.used_on
FROM (SELECT user_id, count(*) AS keys,
             coalesce((max(last_used_at) AT TIME ZONE 'UTC')::date, '-infinity') AS used_on
      FROM authenticators GROUP BY user_id) n
WHERE u.id = n.user_id;

CREATE FUNCTION organization_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.org_id := (SELECT u.org_id FROM users u WHERE u.id = NEW.user_id);
  RETURN NEW;
END $$;
CREATE TRIGGER organization_of_key BEFORE INSERT ON authenticators
  FOR EACH ROW EXECUTE FUNCTION organization_of_key();

-- A transaction that adds, removes or uses a key has locked the row of the user before.
CREATE FUNCTION count_keys_of_users() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE users u SET key_count = n.keys, key_used_on = n.used_on
  FROM (SELECT c.user_id, count(k.id) AS keys,
               coalesce((max(k.last_used_at) AT TIME ZONE 'UTC')::date, '-infinity') AS used_on
        FROM (SELECT DISTINCT user_id FROM changed) c LEFT JOIN authenticators k ON k.user_id = c.user_id
        GROUP BY c.user_id) n
  WHERE u.id = n.user_id AND (u.key_count, u.key_used_on) IS DISTINCT FROM (n.keys, n.used_on);
  RETURN NULL;
END $$;
CREATE TRIGGER keys_added AFTER INSERT ON authenticators REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_keys_of_users();
CREATE TRIGGER keys_removed AFTER DELETE ON authenticators REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_keys_of_users();

-- Once a day and key: the day alone is kept.
CREATE FUNCTION note_use_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE users SET key_used_on = (NEW.last_used_at AT TIME ZONE 'UTC')::date
  WHERE id = NEW.user_id AND key_used_on < (NEW.last_used_at AT TIME ZONE 'UTC')::date;
  RETURN NULL;
END $$;
CREATE TRIGGER key_used AFTER UPDATE OF last_used_at ON authenticators FOR EACH ROW
  WHEN ((NEW.last_used_at AT TIME ZONE 'UTC')::date IS DISTINCT FROM (OLD.last_used_at AT TIME ZONE 'UTC')::date)
  EXECUTE FUNCTION note_use_of_key();

-- The members of an organization by address, by the number of keys, by the last use of a key, and the rare ones.
CREATE INDEX users_by_address ON users (org_id, email_key COLLATE "C");
CREATE INDEX users_by_keys ON users (org_id, key_count, email_key COLLATE "C");
CREATE INDEX users_by_use ON users (org_id, key_used_on, id);
CREATE INDEX users_admins ON users (org_id, email_key COLLATE "C") WHERE is_org_admin;
CREATE INDEX users_inactive ON users (org_id, email_key COLLATE "C") WHERE NOT active;
-- A search finds the beginning of a name, and the beginning of its last word.
CREATE INDEX users_by_name ON users (org_id, (lower(left(name, 64))) COLLATE "C");
CREATE INDEX users_by_last_name ON users (org_id, (lower(left(substring(name FROM '[^ ]+$'), 64))) COLLATE "C");
CREATE INDEX authenticators_models ON authenticators (org_id, aaguid);

-- The latest administrative events, which a log full of logins hides.
CREATE INDEX audit_events_org_admin ON audit_events (org_id, created_at DESC, id DESC) WHERE class = 'admin';
