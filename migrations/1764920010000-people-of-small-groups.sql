-- The members of removed groups, at most 1,000 people, so that what they hold ends before the answer, also if the target admits many
-- other people. Only people who held something get an event: events for all of them would list the group. The version before does not
-- read the column, and takes such a row for one about every person of the target, which ends the same.
ALTER TABLE access_endings ADD COLUMN member_ids uuid[];

-- The end of assignments. People who were assigned themselves have a row, and so have the members of removed groups. If a group was
-- removed, a row about every person follows, because a person may become its member while the change commits. The members are read
-- before the commit: the end of a membership beside this change either sees the assignment, or is not yet seen here.
CREATE OR REPLACE FUNCTION queue_ended_assignments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule, user_ids, member_ids)
  SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t),
         CASE WHEN q.user_ids IS NULL AND e.of_group THEN 'membership' ELSE 'assignment' END, q.user_ids, q.member_ids
  FROM (
    SELECT x.target_id, count(x.user_id) AS people, count(x.group_id) AS groups,
           array_agg(x.user_id) FILTER (WHERE x.user_id IS NOT NULL) AS user_ids,
           bool_or(x.group_id IS NOT NULL AND NOT EXISTS (SELECT FROM groups g WHERE g.id = x.group_id)) AS of_group
    FROM gone x
    WHERE x.user_id IS NULL OR EXISTS (SELECT FROM users u WHERE u.id = x.user_id)
    GROUP BY x.target_id
  ) e JOIN access_targets t ON t.id = e.target_id CROSS JOIN LATERAL (
    SELECT e.user_ids, NULL::uuid[] AS member_ids WHERE e.people BETWEEN 1 AND 1000
    UNION ALL
    SELECT NULL, m.ids
    FROM (
      SELECT array_agg(DISTINCT y.user_id) AS ids, count(*) AS n
      FROM gone x CROSS JOIN LATERAL (SELECT g.user_id FROM group_members g WHERE g.group_id = x.group_id LIMIT 1001) y
      WHERE x.target_id = e.target_id
    ) m WHERE m.n BETWEEN 1 AND 1000 - e.people
    UNION ALL
    SELECT NULL, NULL WHERE e.groups > 0 OR e.people > 1000
  ) q
  WHERE t.access = 'assigned';
  RETURN NULL;
END $$;
