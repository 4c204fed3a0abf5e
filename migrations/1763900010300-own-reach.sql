-- The last list of targets that a person read, and when a reading first found it changed. A time is stored, because a group
-- or an assignment that is deleted leaves none.
CREATE TABLE own_reach_lists (
  user_id    uuid        PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  digest     bytea       NOT NULL,
  changed_at timestamptz NOT NULL
);
