-- When what a group shows of its members last changed without a write of the group. The lastModified of the group is not before it,
-- so that a client that asks for the groups since a time finds the group.
ALTER TABLE group_member_versions ADD COLUMN changed_at timestamptz;

CREATE OR REPLACE FUNCTION group_members_gone() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  id uuid;
BEGIN
  FOR id IN SELECT DISTINCT group_id FROM gone ORDER BY group_id LOOP
    UPDATE group_member_versions SET version = version + 1, changed_at = now() WHERE group_id = id;
  END LOOP;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION users_renamed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  id uuid;
BEGIN
  FOR id IN SELECT group_id FROM group_members WHERE user_id = NEW.id ORDER BY group_id LOOP
    UPDATE group_member_versions SET version = version + 1, changed_at = now() WHERE group_id = id;
  END LOOP;
  RETURN NULL;
END $$;
