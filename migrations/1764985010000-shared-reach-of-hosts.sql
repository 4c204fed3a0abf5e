-- All elements of several arrays, in the order of the arrays.
CREATE AGGREGATE all_elements (text[]) (SFUNC = array_cat, STYPE = text[], INITCOND = '{}');

-- The groups of hosts of an organization that admit a person: those open to everyone, those to which the person is assigned
-- (targets), and those of the SCIM groups of the person (groups). A host leaves the groups that match it. PostgreSQL puts the
-- function into the query of a batch. For one request, whose arguments are subqueries, it runs the function by itself.
CREATE FUNCTION admitting_hosts(org uuid, host text, targets uuid[], groups uuid[]) RETURNS TABLE (
  carried        hosts_in_certificate[], -- by name; NULL if no group admits the person
  principals     text[],
  names          text[],
  listed         jsonb,
  is_partial     boolean,                -- perhaps not all of them are carried: one has conditions, or no logins
  are_others     boolean,                -- no group admits the person, but the organization has groups
  is_closed      boolean                 -- no group admits the person, but one matches the host
) LANGUAGE sql STABLE AS $$
  SELECT g.*,
         g.carried IS NULL AND EXISTS (SELECT FROM access_targets x WHERE x.org_id = $1 AND x.kind = 'host_group'),
         g.carried IS NULL AND $2 IS NOT NULL AND EXISTS (
           SELECT FROM access_targets x WHERE x.org_id = $1 AND x.kind = 'host_group' AND matches_host(x.hosts, $2))
  FROM (
    SELECT array_agg((h.id, h.principals)::hosts_in_certificate) AS carried, all_elements(h.principals), array_agg(h.name),
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
  ) g
$$;

-- Returns the groups of hosts that the people of requests reach, a row for each request. People with the same assignments and SCIM
-- groups share the look-up of their groups of hosts, and only a request that names principals, or a person with a group that has
-- conditions, needs a look at each group. One query serves all requests of a batch, because PostgreSQL prepares a query for each run,
-- and a shorter one serves a request alone. Both hide the array from the planner, which would plan anew for each one. Decides as the
-- function before, except that a certificate carries a group only if the touch allows it a whole second more: a certificate ends at a
-- whole second, and one of the last second would have ended when it was issued, also for its other principals.
CREATE OR REPLACE FUNCTION reach_of_hosts(asked asked_hosts[]) RETURNS SETOF hosts_of_person LANGUAGE plpgsql STABLE ROWS 10
SET enable_seqscan = off AS $$
DECLARE
  requests refcursor;
  t     record;
  h     record;
  r     hosts_of_person;
  own   text[];
  touch float8;
BEGIN
  IF cardinality(asked) = 1 THEN
    OPEN requests NO SCROLL FOR
      SELECT q.n, q.touches, q.names AS wanted, q.host, g.*
      FROM (SELECT asked AS all_asked) a CROSS JOIN LATERAL unnest((SELECT a.all_asked)) q CROSS JOIN LATERAL admitting_hosts(q.org, q.host,
        ARRAY(SELECT x.target_id FROM access_assignments x WHERE x.of_hosts AND x.user_id = q.person),
        ARRAY(SELECT m.group_id FROM group_members m
              WHERE m.user_id = q.person AND (SELECT d.access_by_groups FROM deployment d WHERE d.only_row))) g;
  ELSE
    OPEN requests NO SCROLL FOR
      WITH people AS MATERIALIZED (
        SELECT q.n, q.org, q.touches, q.names AS wanted, q.host,
          ARRAY(SELECT x.target_id FROM access_assignments x WHERE x.of_hosts AND x.user_id = q.person ORDER BY x.target_id) AS targets,
          ARRAY(SELECT m.group_id FROM group_members m
                WHERE m.user_id = q.person AND (SELECT d.access_by_groups FROM deployment d WHERE d.only_row)
                  AND EXISTS (SELECT FROM access_assignments x WHERE x.of_hosts AND x.group_id = m.group_id OFFSET 0)
                ORDER BY m.group_id) AS groups
        FROM (SELECT asked AS all_asked) a CROSS JOIN LATERAL unnest((SELECT a.all_asked)) q
      ), numbered AS MATERIALIZED (
        SELECT p.*, dense_rank() OVER (ORDER BY p.org, p.host, p.targets, p.groups) AS place FROM people p
      ), reached AS MATERIALIZED (
        SELECT k.place, g.*
        FROM (SELECT DISTINCT ON (p.place) p.* FROM numbered p ORDER BY p.place) k
        CROSS JOIN LATERAL admitting_hosts(k.org, k.host, k.targets, k.groups) g
      )
      SELECT p.n, p.touches, p.wanted, p.host, k.carried, k.principals, k.names, k.listed, k.is_partial, k.are_others, k.is_closed
      FROM numbered p JOIN reached k ON k.place = p.place;
  END IF;
  LOOP
    FETCH requests INTO t;
    EXIT WHEN NOT FOUND;
    IF t.carried IS NULL THEN
      RETURN NEXT (t.n, false, false, t.is_closed, '{}', NULL, NULL, NULL, CASE WHEN t.are_others THEN '[]' END, false,
                   NULL, NULL, NULL)::hosts_of_person;
      CONTINUE;
    END IF;
    IF t.wanted IS NULL AND NOT t.is_partial THEN
      RETURN NEXT (t.n, true, true, false, t.principals, t.carried, t.names, NULL, CASE WHEN t.host IS NULL THEN t.listed END, false,
                   NULL, NULL, NULL)::hosts_of_person;
      CONTINUE;
    END IF;
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
  END LOOP;
  CLOSE requests;
END $$;
