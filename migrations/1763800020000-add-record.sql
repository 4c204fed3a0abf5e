-- Adds a user whom SCIM creates, with its addresses, if no one is in the way: no user signs in with an address that it names, no
-- tombstone or removed identity of it could be lifted, and its userName is free. Returns whether it added the user. Otherwise it has
-- changed nothing, and the service decides in a transaction of its own.
-- It locks the directory until the transaction ends. Each statement of a volatile function has a new snapshot: the statements after
-- the lock see all that was committed before the lock came.
CREATE FUNCTION add_unclaimed_record(
  new_id uuid, new_org_id uuid, new_email text, new_name text, new_active boolean, new_user_name text, new_external_id text,
  new_attributes jsonb,
  has text[], ranks smallint[], -- the addresses of the user, as `addresses_of_record` finds them
  plain text[]                  -- all other addresses that the user names
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  added uuid;
BEGIN
  PERFORM FROM directory_locks d WHERE d.org_id = new_org_id FOR UPDATE;
  IF EXISTS (SELECT FROM users u WHERE u.org_id = new_org_id AND u.email = ANY (has || plain))
    OR EXISTS (SELECT FROM scim_tombstones t WHERE t.org_id = new_org_id AND t.email = ANY (has))
    OR EXISTS (SELECT FROM scim_removed_identities i
               WHERE i.org_id = new_org_id AND lower(i.user_name COLLATE "C") = lower(new_user_name COLLATE "C"))
    OR EXISTS (SELECT FROM scim_removed_identities i WHERE i.org_id = new_org_id AND i.external_id = new_external_id)
  THEN
    RETURN false;
  END IF;
  PERFORM set_config('svc.record_addresses', 'written', true);
  WITH made AS (
    INSERT INTO users (id, org_id, email, name, active, scim_managed, user_name, external_id, attributes)
    VALUES (new_id, new_org_id, new_email, new_name, new_active, true, new_user_name, new_external_id, new_attributes)
    ON CONFLICT DO NOTHING
    RETURNING id, org_id
  ), kept AS (
    INSERT INTO record_addresses (user_id, org_id, address, rank)
    SELECT m.id, m.org_id, a.address, a.rank FROM made m, unnest(has, ranks) a (address, rank)
  )
  SELECT m.id INTO added FROM made m;
  PERFORM set_config('svc.record_addresses', '', true);
  RETURN added IS NOT NULL;
END $$;

-- The same as before, but for a statement that adds a user together with its addresses.
CREATE OR REPLACE FUNCTION note_record_addresses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- A setting, because a look at the table would be planned while it is empty, and then read all of it for each of many users.
  IF TG_OP = 'INSERT' AND current_setting('svc.record_addresses', true) = 'written' THEN
    RETURN NULL;
  END IF;
  WITH named AS (
    SELECT n.address, min(n.rank) AS rank
    FROM (SELECT a.address, a.rank FROM addresses_of_record(coalesce(NEW.user_name, NEW.email), NEW.attributes) a
          UNION ALL SELECT NEW.email, NULL WHERE NEW.email IS NOT NULL) n
    GROUP BY n.address
  ), had AS (
    UPDATE record_addresses a SET rank = NULL
    WHERE a.user_id = NEW.id AND a.rank IS NOT NULL AND a.address NOT IN (SELECT n.address FROM named n)
  )
  INSERT INTO record_addresses AS a (user_id, org_id, address, rank)
  SELECT NEW.id, NEW.org_id, n.address, n.rank FROM named n
  ON CONFLICT (user_id, address) DO UPDATE SET rank = CASE WHEN a.parted THEN NULL ELSE EXCLUDED.rank END
    WHERE a.rank IS DISTINCT FROM EXCLUDED.rank;
  RETURN NULL;
END $$;
