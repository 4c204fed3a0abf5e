-- The setting SVC_ACCESS_BY_GROUPS as of this moment, not as of the start of the statement: for a statement that has waited for the
-- lock on a target. VOLATILE, so that each call has its own snapshot.
CREATE FUNCTION access_by_groups_now() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT d.access_by_groups FROM deployment d);
END
$$;
