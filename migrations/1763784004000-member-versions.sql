-- How often what a group shows of its members changed without a write of the group: a member was deleted, or has another name.
-- It is beside the groups, so that a deletion of a user waits for no change of a group.
CREATE TABLE group_member_versions (
  group_id uuid   PRIMARY KEY REFERENCES groups (id) ON DELETE CASCADE,
  version  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The row is there from the beginning: an INSERT would wait for the lock of its group.
CREATE FUNCTION groups_member_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO group_member_versions (group_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER groups_member_version AFTER INSERT ON groups
  FOR EACH ROW EXECUTE FUNCTION groups_member_version();
INSERT INTO group_member_versions (group_id) SELECT id FROM groups ON CONFLICT DO NOTHING;

-- In the order of the groups, as everybody who takes several. Each by its key, whatever the planner thinks of a set.
CREATE FUNCTION group_members_gone() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  id uuid;
BEGIN
  FOR id IN SELECT DISTINCT group_id FROM gone ORDER BY group_id LOOP
    UPDATE group_member_versions SET version = version + 1 WHERE group_id = id;
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER group_members_gone AFTER DELETE ON group_members REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION group_members_gone();

CREATE FUNCTION users_renamed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  id uuid;
BEGIN
  FOR id IN SELECT group_id FROM group_members WHERE user_id = NEW.id ORDER BY group_id LOOP
    UPDATE group_member_versions SET version = version + 1 WHERE group_id = id;
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER users_renamed AFTER UPDATE OF name, user_name, email ON users
  FOR EACH ROW
  WHEN (coalesce(OLD.name, OLD.user_name, OLD.email) IS DISTINCT FROM coalesce(NEW.name, NEW.user_name, NEW.email))
  EXECUTE FUNCTION users_renamed();
