-- The function is made again without the columns are_others and is_closed, which few requests need.
DROP FUNCTION admitting_hosts(uuid, text, uuid[], uuid[]);

-- The groups of hosts of an organization that admit people of a batch: those open to everyone, those to which the people are
-- assigned (targets), and those of their SCIM groups (groups). A host leaves the groups that match it. PostgreSQL puts the function
-- into the query of the batch. reach_of_hosts has the same rule for a request alone: change both.
CREATE FUNCTION admitting_hosts(org uuid, host text, targets uuid[], groups uuid[]) RETURNS TABLE (
  carried        hosts_in_certificate[], -- by name; NULL if no group admits the people
  principals     text[],
  names          text[],
  listed         jsonb,
  is_partial     boolean                 -- perhaps not all of them are carried: one has conditions, or no logins
) LANGUAGE sql STABLE AS $$
  SELECT array_agg((h.id, h.principals)::hosts_in_certificate), all_elements(h.principals), array_agg(h.name),
         jsonb_agg(jsonb_build_object('name', h.name, 'hosts', h.hosts, 'carried', true)),
         bool_or(num_nonnulls(h.touch_within_seconds, h.models, h.user_verification) > 0 OR coalesce(h.principals, '{}') = '{}')
  FROM (
    SELECT x.*
    FROM access_targets x
    WHERE x.org_id = $1 AND x.kind = 'host_group' AND ($2 IS NULL OR matches_host(x.hosts, $2)) AND x.id = ANY (ARRAY(
      SELECT e.id FROM access_targets e WHERE e.org_id = $1 AND e.kind = 'host_group' AND e.access = 'everyone'
      UNION ALL
      SELECT unnest($3)
      UNION ALL
      SELECT y.target_id FROM access_assignments y WHERE y.of_hosts AND y.group_id = ANY ($4)))
    ORDER BY x.name COLLATE "C"
  ) h
$$;

-- Returns the groups of hosts that the people of requests reach, a row for each request. People of a batch with the same assignments
-- and SCIM groups share the look-up of their groups of hosts, and only a request that names principals, or a person with a group that
-- has conditions, needs a look at each group. One query serves all requests of a batch, because PostgreSQL prepares a query for each
-- run. A request alone has the query of admitting_hosts, written out for its person, because a cursor, a function in the query and
-- arrays as arguments took a quarter of the time. PostgreSQL keeps one plan of each query (force_generic_plan), because it would
-- otherwise plan some of them again for each array. The function decides as the one before.
CREATE OR REPLACE FUNCTION reach_of_hosts(asked asked_hosts[]) RETURNS SETOF hosts_of_person LANGUAGE plpgsql STABLE ROWS 10
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  requests refcursor;
  one   asked_hosts;
  t     record;
  h     record;
  r     hosts_of_person;
  own   text[];
  touch float8;
BEGIN
  IF cardinality(asked) = 1 THEN
    one := asked[1];
    SELECT one.n AS n, one.org AS org, one.touches AS touches, one.names AS wanted, one.host AS host,
      array_agg((g.id, g.principals)::hosts_in_certificate) AS carried, all_elements(g.principals) AS principals, array_agg(g.name) AS names,
      jsonb_agg(jsonb_build_object('name', g.name, 'hosts', g.hosts, 'carried', true)) AS listed,
      bool_or(num_nonnulls(g.touch_within_seconds, g.models, g.user_verification) > 0 OR coalesce(g.principals, '{}') = '{}') AS is_partial
    INTO t
    FROM (
      SELECT x.*
      FROM access_targets x
      WHERE x.org_id = one.org AND x.kind = 'host_group' AND (one.host IS NULL OR matches_host(x.hosts, one.host)) AND x.id = ANY (ARRAY(
        SELECT e.id FROM access_targets e WHERE e.org_id = one.org AND e.kind = 'host_group' AND e.access = 'everyone'
        UNION ALL
        SELECT y.target_id FROM access_assignments y WHERE y.of_hosts AND y.user_id = one.person
        UNION ALL
        SELECT y.target_id FROM access_assignments y WHERE y.of_hosts AND y.group_id = ANY (ARRAY(
          SELECT m.group_id FROM group_members m
          WHERE m.user_id = one.person AND (SELECT d.access_by_groups FROM deployment d WHERE d.only_row)))))
      ORDER BY x.name COLLATE "C"
    ) g;
  ELSE
    OPEN requests NO SCROLL FOR
      WITH people AS MATERIALIZED (
        SELECT q.n, q.org, q.touches, q.names AS wanted, q.host,
          ARRAY(SELECT x.target_id FROM access_assignments x WHERE x.of_hosts AND x.user_id = q.person ORDER BY x.target_id) AS targets,
          ARRAY(SELECT m.group_id FROM group_members m
                WHERE m.user_id = q.person AND (SELECT d.access_by_groups FROM deployment d WHERE d.only_row)
                  AND EXISTS (SELECT FROM access_assignments x WHERE x.of_hosts AND x.group_id = m.group_id OFFSET 0)
                ORDER BY m.group_id) AS groups
        FROM unnest(asked) q
      ), numbered AS MATERIALIZED (
        SELECT p.*, dense_rank() OVER (ORDER BY p.org, p.host, p.targets, p.groups) AS place FROM people p
      ), reached AS MATERIALIZED (
        SELECT k.place, g.*
        FROM (SELECT DISTINCT ON (p.place) p.* FROM numbered p ORDER BY p.place) k
        CROSS JOIN LATERAL admitting_hosts(k.org, k.host, k.targets, k.groups) g
      )
      SELECT p.n, p.org, p.touches, p.wanted, p.host, k.carried, k.principals, k.names, k.listed, k.is_partial
      FROM numbered p JOIN reached k ON k.place = p.place;
  END IF;
  -- A request alone has no cursor: its row is in t, and the loop runs once.
  LOOP
    IF requests IS NOT NULL THEN
      FETCH requests INTO t;
      EXIT WHEN NOT FOUND;
    END IF;
    IF t.carried IS NULL THEN
      RETURN NEXT (t.n, false, false,
                   t.host IS NOT NULL AND EXISTS (
                     SELECT FROM access_targets x WHERE x.org_id = t.org AND x.kind = 'host_group' AND matches_host(x.hosts, t.host)),
                   '{}', NULL, NULL, NULL,
                   CASE WHEN EXISTS (SELECT FROM access_targets x WHERE x.org_id = t.org AND x.kind = 'host_group') THEN '[]' END, false,
                   NULL, NULL, NULL)::hosts_of_person;
    ELSIF t.wanted IS NULL AND NOT t.is_partial THEN
      RETURN NEXT (t.n, true, true, false, t.principals, t.carried, t.names, NULL, CASE WHEN t.host IS NULL THEN t.listed END, false,
                   NULL, NULL, NULL)::hosts_of_person;
    ELSE
      r := (t.n, true, false, false, '{}', NULL, NULL, NULL, CASE WHEN t.host IS NULL THEN '[]' END, false,
            NULL, NULL, NULL)::hosts_of_person;
      FOR h IN
        SELECT x.id, x.name, x.hosts, x.principals, x.touch_within_seconds, x.models, x.user_verification,
               num_nonnulls(x.touch_within_seconds, x.models, x.user_verification) > 0 AS has_conditions
        FROM unnest(t.carried) WITH ORDINALITY c (id, principals, place) JOIN access_targets x ON x.id = c.id
        ORDER BY c.place
      LOOP
        own := h.principals;
        IF t.wanted IS NOT NULL THEN
          own := ARRAY(SELECT x FROM unnest(own) WITH ORDINALITY o (x, i) WHERE x = ANY (t.wanted) ORDER BY i);
        END IF;
        IF h.has_conditions THEN
          touch := fitting_touch(t.touches, h.models, h.user_verification);
          IF touch IS NULL OR date_trunc('second', to_timestamp(touch + h.touch_within_seconds)) <= now() THEN
            IF NOT r.has_unmet AND (own <> '{}' OR t.wanted = '{}') THEN
              r.has_unmet := true;
              r.touch_within_seconds := h.touch_within_seconds;
              r.models := h.models;
              r.user_verification := h.user_verification;
            END IF;
            r.listed := r.listed || jsonb_build_object('name', h.name, 'hosts', h.hosts, 'carried', false);
            CONTINUE;
          END IF;
          IF own <> '{}' THEN
            r.ends := least(r.ends, to_timestamp(touch + h.touch_within_seconds));
          END IF;
        END IF;
        r.is_met := true;
        r.listed := r.listed || jsonb_build_object('name', h.name, 'hosts', h.hosts, 'carried', own <> '{}');
        IF own <> '{}' THEN
          r.principals := r.principals || own;
          r.carried := r.carried || (h.id, own)::hosts_in_certificate;
          r.carried_names := r.carried_names || h.name;
        END IF;
      END LOOP;
      RETURN NEXT r;
    END IF;
    EXIT WHEN requests IS NULL;
  END LOOP;
  IF requests IS NOT NULL THEN
    CLOSE requests;
  END IF;
END $$;
