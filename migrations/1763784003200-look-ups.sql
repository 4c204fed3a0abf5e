-- What a look-up by a unique key compares: one expression, which one unique index has. PostgreSQL then knows that one row matches at
-- most, whatever its statistics say; of an index over two columns it does not know. An id has 36 characters, so no two keys are alike.
CREATE UNIQUE INDEX users_user_name_key ON users ((org_id::text || lower(coalesce(user_name, email, id::text) COLLATE "C")));
CREATE UNIQUE INDEX groups_display_name_key ON groups ((org_id::text || lower(display_name COLLATE "C")));
